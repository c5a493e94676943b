#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/cost/plan.h"

namespace shardproof::cost {

/// The longest context that a decode has room for.
struct Capacity {
  Strategy strategy;
  Torus torus;
  WeightType weights;
  std::int64_t heads = 0;  ///< as padded
  std::int64_t batch = 1;
  std::int64_t context = 0;
  double caches = 0.0;  ///< bytes of one chip at that context
};

/// Of every torus, weight type, batch and strategy of the request that has room for one position,
/// the longest first (the paper's Table 1). With a share the caches have that part of a chip's
/// memory (section 3.3); without one what weights and live values leave.
std::vector<Capacity> longest_contexts(const PlanRequest& request, std::optional<double> share);

}  // namespace shardproof::cost
