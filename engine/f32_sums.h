#pragma once

#include "engine/moves.h"
#include "engine/numeric/threads.h"
#include "engine/sharded.h"
#include "engine/summation.h"

namespace shardproof {

/// Every chip's f32 sums of the pieces it receives: partials of the f32 regime.
ChipArrays<float> f32_sums(const ChipArrays<float>& from, const Moves& moves, const Summation& how,
                           Threads& threads);

}  // namespace shardproof
