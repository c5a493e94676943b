#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/trace/reference/reference.h"
#include "golden/trace/value/held.h"
#include "golden/trace/verdict/row.h"

namespace shardproof::candidate {

struct Verdict {
  std::vector<Row> rows;  ///< in the order of the run
  std::vector<Unknown> unknown;
  std::int64_t copies = 0;   ///< values that stand in the trace as the same as another
  std::int64_t misfits = 0;  ///< arrays that are no value of the model's form
  /// Whole values of the model that have a verdict, and all that there are.
  std::int64_t compared = 0, whole = 0;
  /// The first row that is different and does not follow from what it is made of.
  std::optional<std::size_t> first;
  std::vector<std::string> not_shown = {};  ///< what no value of the run could have shown

  std::int64_t count(Fit fit) const;
  /// Whether some whole value of the run, or of a trace of weights alone some weight, is equal,
  /// within or near: loose ones prove nothing.
  bool proves() const;
  /// The first row that is no better than a verdict, none judged apart; none.
  std::optional<std::size_t> first_from(Fit fit) const;
  /// Whether a layer's out is not judged because what it is made of is missing.
  bool lacks_operands() const;
  /// 0: it proves something, every array is of a form, no layer's out lacks operands, and no row is
  /// as bad as `fail_on` or worse; else 1.
  int exit_code(Fit fail_on = Fit::unlikely) const;
};

/// Judges every value of a trace. Throws what bounds::Replay throws.
Verdict judge(const Values& values, const Claim& claim, Reference& reference);

}  // namespace shardproof::candidate
