#pragma once

#include <string_view>

#include "engine/run/plan.h"

namespace shardproof {

/// Returns the arithmetic that our runs claim for their values (docs/trace-format.md,
/// `arithmetic`): the bits of the exact regime, or sums in f32.
std::string_view claimed_arithmetic(const Numerics& numerics);

/// Returns the maximum number of times that a partial sum of the run is rounded to bf16 on the
/// wire, by each reduction's schedule; 0 if never.
int wire_roundings(const RunPlan& plan);

}  // namespace shardproof
