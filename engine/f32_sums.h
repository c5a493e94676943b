#pragma once

#include "engine/moves.h"
#include "engine/numeric/threads.h"
#include "engine/sharded.h"
#include "weights/numerics.h"

namespace shardproof {

/// Every chip's f32 sums of the pieces it receives, in the order of the schedule: partials of the
/// f32 regime.
ChipArrays<float> f32_sums(const ChipArrays<float>& from, const Moves& moves, Schedule schedule,
                           Threads& threads);

}  // namespace shardproof
