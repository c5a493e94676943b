#pragma once

#include <string_view>

#include "engine/run/plan.h"

namespace shardproof {

/// What a run of ours claims of its values (docs/trace-format.md, `arithmetic`): the bits of the
/// exact regime, or sums in f32.
std::string_view claimed_arithmetic(const Numerics& numerics);

/// How often a sum of the run is rounded to bf16 before its last rounding, at most: on the wire, as
/// each reduction's schedule has it, and with acc=bf16 after each of its terms. 0 where it never
/// is.
int wire_roundings(const RunPlan& plan);

}  // namespace shardproof
