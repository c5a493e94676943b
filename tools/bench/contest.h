#pragma once

#include <functional>
#include <vector>

#include "tools/bench/cost.h"

namespace shardproof::bench {

/// Runs the sides in turn, in one process, `rounds` times after an uncounted round, and returns
/// each side's median by either clock. A short side runs several times per round, so that each
/// measurement takes about a millisecond or more.
std::vector<Cost> contest(const std::vector<std::function<void()>>& sides, Whose whose,
                          int rounds = 15);

}  // namespace shardproof::bench
