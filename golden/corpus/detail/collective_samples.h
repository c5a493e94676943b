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

/// Every collective over every ordered list of axes that it may have, on BE: where the dim of the
/// op had other axes before, and where others are partial sums or the other dim's. The dim is E and
/// B in turn. all_to_all goes from B to E, also into another order of its axes.
std::vector<CollectiveSample> collective_samples();

}  // namespace shardproof::corpus
