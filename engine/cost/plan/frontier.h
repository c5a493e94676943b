#pragma once

#include <vector>

#include "engine/cost/plan/plan.h"

namespace shardproof::cost {

/// Of choices of one phase, a prefill or a decode, those that are the fastest, or of equals the
/// cheapest, of their number of chips, batch and weight type.
std::vector<const Choice*> fastest_of_each(const std::vector<Choice>& choices, bool prefills);

/// Of those the Pareto frontier of cost against latency: by growing latency, each cheaper than all
/// that are faster.
std::vector<const Choice*> frontier(std::vector<const Choice*> choices);

}  // namespace shardproof::cost
