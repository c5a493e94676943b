#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/cost/plan/plan.h"
#include "weights/base/error.h"

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
/// the longest first (the paper's Table 1). Caches have what weights and live values leave of a
/// chip's memory; with a share that part of it at most (section 3.3).
std::vector<Capacity> longest_contexts(const PlanRequest& request, std::optional<double> share);

/// Throws Error where nothing was found: as require_choice does of a decode at a context of one
/// position; "plan_c1" where that fits, but its caches not in the share, with one that is enough.
void require_capacity(const std::vector<Capacity>& found, const PlanRequest& request,
                      std::optional<double> share);

}  // namespace shardproof::cost
