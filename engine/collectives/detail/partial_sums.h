#pragma once

#include "engine/collectives/chip_groups.h"
#include "engine/collectives/moves.h"
#include "engine/numeric/threads.h"
#include "engine/shards/sharded.h"

namespace shardproof {

/// Every chip's exact sums of the pieces it receives, each rounded once. `groups`: chips that
/// receive the same pieces.
ChipArrays<float> rounded_sums(const Partial& from, const Moves& moves, const ChipGroups& groups,
                               Threads& threads);

/// Every chip's sums of its pieces, still partial: values and bounds added, origins concatenated.
Partial partial_sums(const Partial& from, const Moves& moves, const ChipGroups& groups,
                     Threads& threads);

}  // namespace shardproof
