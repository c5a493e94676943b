#pragma once

#include "engine/run/plan_types.h"

namespace shardproof::cost {

/// What is to be held: a run alone, also its trace's largest array, or also the oracle's answer to
/// it and what judges it.
enum class Holding { run, traced_run, run_and_answer };

/// Approximate bytes that a run holds: weights, unsharded and placed, caches, and the values of a
/// layer that are live at once. With the oracle's answer also its weights and every checkpoint of
/// every pass, and in the f32 regime what its judge holds. `types` are the plan's.
double estimated_bytes(const RunPlan& plan, const PlanTypes& types,
                       Replicas replicas = Replicas::shared,
                       Holding holding = Holding::run_and_answer);

}  // namespace shardproof::cost
