#pragma once

#include <string>
#include <vector>

#include "engine/layout/layout.h"

namespace shardproof::corpus {

/// A collective on a value t, as programs write it (docs/program.md).
struct CollectiveSample {
  Layout operand, result;
  std::string op;    ///< "all_gather"
  std::string call;  ///< "all_gather(t, E, zy)"
};

/// Returns every collective on BE over every ordered list of axes that it may have: with other axes
/// already on the op's dim, and with others as partial sums or on the other dim. The op's dim is E
/// and B in turn. all_to_all goes from B to E, also into another order of its axes.
std::vector<CollectiveSample> collective_samples();

}  // namespace shardproof::corpus
