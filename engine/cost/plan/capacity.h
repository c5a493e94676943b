#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/cost/plan/plan.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// The longest context for which a decode has memory.
struct Capacity {
  Strategy strategy;
  Torus torus;
  NumberFormat weights;
  std::int64_t heads = 0;  ///< after padding
  std::int64_t batch = 1;
  std::int64_t context = 0;
  double caches = 0.0;  ///< bytes on one chip at that context
};

/// Returns the longest context of every torus, weight type, batch and strategy of the request that
/// has memory for one position, the longest first (the paper's Table 1). The caches get the memory
/// that weights and live values leave; with `share`, at most that fraction of it (section 3.3).
std::vector<Capacity> longest_contexts(const PlanRequest& request, std::optional<double> share);

/// Throws Error if `found` is empty: what require_choice throws for a decode at a context of one
/// position; "plan_c1", naming a sufficient share, if it fits but its caches exceed `share`.
void require_capacity(const std::vector<Capacity>& found, const PlanRequest& request,
                      std::optional<double> share);

}  // namespace shardproof::cost
