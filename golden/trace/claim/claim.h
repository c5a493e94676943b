#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/case.h"
#include "golden/bounds/number/interval_tensor.h"
#include "golden/trace/claim/mesh.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// The writer's declarations about a trace as a whole (docs/trace-format.md).
struct Claim {
  Case source_case;
  bool exact = false;            ///< claims the bits of the exact regime
  bool in_field = false;         ///< is of the field regime: judged by judge_in_field alone
  bool arithmetic_said = false;  ///< false: the weakest claim is assumed
  bounds::DeclaredArithmetic declared;
  Mesh mesh;
  bool weights_of_file = false;
  bool other_text = false;  ///< the trace names another text than the case it is judged by
  bool masked_any = false;
  std::optional<Rope> pairs;  ///< writer's order of rotated channels, if not the model's
  double score_unit = 1.0;    ///< factor from the writer's scores and maxima to the model's
  double logits_unit = 1.0;   ///< factor from the writer's logits to the model's
  bool gain_folded = false;
  bool ids_are_given = false;       ///< the prompt is the case's own, so ids are judged
  std::vector<std::int64_t> rows;   ///< number that each row draws its tokens by; empty: its index
  std::vector<std::int64_t> heads;  ///< the model's head for each of the writer's; empty: the same
  std::vector<std::string> operands;  ///< patterns of names of given values, which are not judged
};

/// Reads the attributes of a trace. `line` replaces the case of the trace, or must agree with it in
/// everything that the values depend on but the lines of a text, by which the trace is then judged.
/// Throws Error: "dump_format" (format or version),
/// "compare_case" (no case; or one that differs from the trace's, naming the key), "dump_attribute"
/// (a meaningless attribute, by name and value), and what parse_case and Mesh::parse throw.
Claim read_claim(const dump::Attributes& attributes, const std::optional<std::string>& line,
                 const ModelText* text_of_line = nullptr);

/// Checks that two cases agree in everything that the values of a run depend on, which excludes
/// torus, strategies and the order of sums. Throws Error("compare_case", ...) naming the key.
void require_same_values(const Case& given, const Case& theirs);

}  // namespace shardproof::dump
