#pragma once

#include <functional>
#include <vector>

#include "tools/bench/cost.h"

namespace shardproof::bench {

/// Runs the sides in turn, in one process, `rounds` times after one round that is not counted, and
/// returns the median of each by either clock. A side that is short runs several times a round, so
/// that every measurement takes about a millisecond or more.
std::vector<Cost> contest(const std::vector<std::function<void()>>& sides, Whose whose,
                          int rounds = 15);

}  // namespace shardproof::bench
