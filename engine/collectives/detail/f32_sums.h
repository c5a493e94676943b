#pragma once

#include "engine/collectives/chip_groups.h"
#include "engine/collectives/moves.h"
#include "engine/collectives/summation.h"
#include "engine/numeric/threads.h"
#include "engine/shards/sharded.h"

namespace shardproof {

/// Every chip's f32 sums of the pieces it receives: partial sums of the f32 regime. `groups`: chips
/// that receive the same pieces.
ChipArrays<float> f32_sums(const ChipArrays<float>& from, const Moves& moves, const Summation& how,
                           ChipGroups groups, Threads& threads);

}  // namespace shardproof
