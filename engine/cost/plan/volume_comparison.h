#pragma once

#include <vector>

#include "engine/cost/plan/plan.h"

namespace shardproof::cost {

/// What one strategy makes a chip send in a layer of a prefill of the whole batch in one pass,
/// whether or not there is memory for it.
struct VolumeOf {
  Strategy strategy;
  double paper = 0.0;  ///< elements, as paper_volume() counts
  double full = 0.0;   ///< elements, as the engine's programs send
};

/// Of the strategies among a plan's choices that have the torus, batch and weights of `like`, the
/// fewest full elements first.
std::vector<VolumeOf> compare_volumes(const Plan& plan, const Candidate& like);

}  // namespace shardproof::cost
