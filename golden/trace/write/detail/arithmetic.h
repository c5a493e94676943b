#pragma once

#include <string_view>

#include "engine/run/plan.h"

namespace shardproof {

/// What a run of ours claims of its values (docs/trace-format.md, `arithmetic`): the bits of the
/// exact regime, or sums in f32.
std::string_view claimed_arithmetic(const Numerics& numerics);

/// How often a partial sum of the run is rounded to bf16 on the wire, at most, as each reduction's
/// schedule has it. 0 where it never is.
int wire_roundings(const RunPlan& plan);

}  // namespace shardproof
