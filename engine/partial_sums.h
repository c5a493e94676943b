#pragma once

#include "engine/moves.h"
#include "engine/numeric/threads.h"
#include "engine/sharded.h"

namespace shardproof {

/// Every chip's exact sums of the pieces it receives, each rounded once.
ChipArrays<float> rounded_sums(const Partial& from, const Moves& moves, Threads& threads);

/// The same sums, still partial: values and bounds added, origins concatenated.
Partial partial_sums(const Partial& from, const Moves& moves, Threads& threads);

}  // namespace shardproof
