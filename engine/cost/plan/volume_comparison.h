#pragma once

#include <vector>

#include "engine/cost/plan/plan.h"

namespace shardproof::cost {

/// Elements that one strategy makes a chip send in a layer of a prefill of the whole batch in one
/// pass, even if it does not fit the memory.
struct VolumeOf {
  Strategy strategy;
  double paper = 0.0;  ///< elements, as paper_volume() counts
  double full = 0.0;   ///< elements that the engine's programs send
};

/// Returns the volumes of the strategies among the plan's choices with the torus, batch and weights
/// of `like`, by ascending full elements.
std::vector<VolumeOf> compare_volumes(const Plan& plan, const Candidate& like);

}  // namespace shardproof::cost
