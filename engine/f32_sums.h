#pragma once

#include "engine/moves.h"
#include "engine/numeric/threads.h"
#include "engine/scheduled_sum.h"
#include "engine/sharded.h"

namespace shardproof {

/// Every chip's f32 sums of the pieces it receives, in this order: partials of the
/// f32 regime.
ChipArrays<float> f32_sums(const ChipArrays<float>& from, const Moves& moves, const SumOrder& order,
                           Threads& threads);

}  // namespace shardproof
