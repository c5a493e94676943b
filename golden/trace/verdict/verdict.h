#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/trace/reference/reference.h"
#include "golden/trace/value/dumped_value.h"
#include "golden/trace/verdict/row.h"

namespace shardproof::dump {

struct Verdict {
  std::vector<Row> rows;  ///< in the order of the run
  std::vector<Unknown> unknown;
  std::int64_t copies = 0;   ///< values declared the same as another
  std::int64_t misfits = 0;  ///< arrays that are not in the form of a value of the model
  /// Whole values of the model that have a verdict, and their total.
  std::int64_t compared = 0, whole = 0;
  /// First row that diverges and does not follow from its operands; else first that diverges.
  std::optional<std::size_t> first;
  std::vector<std::string> not_shown = {};  ///< faults that no value of the run could have shown

  std::int64_t count(Fit fit) const;
  /// Returns whether some whole value of the run (in a trace of weights alone: some weight) is
  /// equal, within or near; loose values prove nothing.
  bool proves() const;
  /// Returns the first judged row whose verdict is `fit` or worse; nullopt if there is none.
  std::optional<std::size_t> first_from(Fit fit) const;
  /// Returns whether a layer's out, a value weighed by its drift alone, or any value of a text is
  /// not judged because operands are missing.
  bool lacks_operands() const;
  /// Returns 0 if the verdict proves something, all arrays fit the model, no operands are lacking,
  /// and no row is as bad as `fail_on` or worse; otherwise 1.
  int exit_code(Fit fail_on = Fit::unlikely) const;
};

/// Judges every value of a trace. Throws what bounds::Replay throws.
Verdict judge(const Values& values, const Claim& claim, Reference& reference);

}  // namespace shardproof::dump
