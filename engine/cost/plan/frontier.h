#pragma once

#include <vector>

#include "engine/cost/plan/plan.h"

namespace shardproof::cost {

/// Returns the fastest choice for each number of chips, batch and weight type, the cheapest of
/// equally fast ones; `prefills` selects the choices with a prefill, otherwise those without one.
std::vector<const Choice*> fastest_of_each(const std::vector<Choice>& choices, bool prefills);

/// Returns the Pareto frontier of cost against latency: by growing latency, each choice cheaper
/// than every faster one.
std::vector<const Choice*> frontier(std::vector<const Choice*> choices);

}  // namespace shardproof::cost
