#pragma once

#include "engine/run/plan_types.h"

namespace shardproof::cost {

/// Approximate bytes that the run and the oracle's answer to it hold: weights, unsharded and
/// placed, caches, every checkpoint of every pass, and the values of a layer that are live at once;
/// in the f32 regime also what its judge holds. `types` are the plan's.
double estimated_bytes(const RunPlan& plan, const PlanTypes& types,
                       Replicas replicas = Replicas::shared);

}  // namespace shardproof::cost
