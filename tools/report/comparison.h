#pragma once

#include <optional>
#include <string>
#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/verdict/verdict.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"
#include "weights/text/model_text.h"

namespace shardproof::tools {

/// What a dump is judged by, besides what it says itself.
struct ComparisonRequest {
  std::string file;                             ///< the dump's name in reports
  std::optional<std::string> line;              ///< the case, where the dump says none
  std::optional<ModelText> text = {};           ///< of that case's model, in place of its file
  std::string weights_file;                     ///< of the run that wrote the dump; "": generated
  std::string golden;                           ///< a golden, in place of the two above
  std::vector<std::string> given;               ///< patterns of values that are not judged
  bounds::Fit fail_on = bounds::Fit::unlikely;  ///< best verdict that counts as a failure
};

/// An operand of a value, and its own verdict.
struct Operand {
  std::string id;
  std::optional<bounds::Fit> fit;  ///< nullopt: it is not in the dump
};

/// Result of `compare` for one dump.
struct Comparison {
  ComparisonRequest request;
  std::string of;                 ///< case, or line of the golden
  dump::Attributes declarations;  ///< attributes of the dump
  dump::Claim claim;              ///< what it claims about its case
  dump::Values values;
  dump::Verdict verdict;
  std::vector<std::string> notes;                ///< remarks besides the verdict
  std::vector<Operand> operands;                 ///< of the first divergence
  std::vector<diagnosis::Hypothesis> diagnosis;  ///< causes of the first divergence

  int exit_code() const { return verdict.exit_code(request.fail_on); }
  /// Returns the row of the first divergence; null if there is none.
  const dump::Row* first() const;
  const dump::DumpedValue& dumped(const dump::Row& row) const { return values.dumped[row.dumped]; }
};

/// Returns the weights as stored for the run: given, a file's, or generated from the case's seed.
/// Throws Error: "compare_weights", "weights_model", and what load_weights throws.
Weights weights_of(const ComparisonRequest& request, const Weights* given,
                   const dump::Claim& claim);

/// Judges a dump, with `weights` in place of a file's if they are given. Throws Error:
/// "compare_weights" (the dump is of a weights file that is not named), "weights_model" (the
/// weights are another model's), "golden_value" (the golden is damaged), and what reading claim,
/// values, weights and golden throws, "dump_changed" of its own file, too.
Comparison compare(const dump::Dump& dump, ComparisonRequest request,
                   const Weights* weights = nullptr);

/// Returns how many given values there are, which are not judged.
std::int64_t count_given(const Comparison& of);

}  // namespace shardproof::tools
