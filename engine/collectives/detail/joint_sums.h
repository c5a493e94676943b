#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/collectives/chip_groups.h"
#include "engine/collectives/moves.h"
#include "engine/numeric/threads.h"
#include "engine/shards/partial_tiles.h"

namespace shardproof {

// Joint sums: chips that receive from the same chips in the same order share one computation. In a
// reduce_scatter each of them takes its block of the one sum of the senders' whole shards, which is
// computed tile by tile, contiguous in memory.

/// Returns true if every chip's pieces are at one offset of their shards, so that sums can be
/// computed jointly, and the chips that share a sum take at least as many elements as it has, so
/// that no work is wasted.
bool sums_are_joint(const Moves& moves, const ChipGroups& groups);

/// Computes sums[0..n) of the elements [begin, begin + n) of the sources' shards.
using MakeTile = std::function<void(const std::vector<int>& sources, std::int64_t begin,
                                    std::int64_t n, float* sums)>;
/// Every chip's sums, in tiles of `tile` elements. Throws std::logic_error if some chip's pieces
/// are at different offsets of their shards.
ChipArrays<float> joint_tiles(const Moves& moves, const ChipGroups& groups, std::int64_t tile,
                              Threads& threads, const MakeTile& make);

/// Exact sums, each rounded once.
ChipArrays<float> joint_sums(const PartialTiles& from, const Moves& moves, const ChipGroups& groups,
                             Threads& threads);
/// f32 sums in group order, starting from the first partial sum.
ChipArrays<float> joint_f32_sums(const ChipArrays<float>& from, const Moves& moves,
                                 const ChipGroups& groups, Threads& threads);

}  // namespace shardproof
