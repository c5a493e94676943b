#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/collectives/chip_groups.h"
#include "engine/collectives/moves.h"
#include "engine/numeric/threads.h"
#include "engine/shards/summands.h"

namespace shardproof {

// Sums of the pieces that chips receive, made together for all chips that receive from the same
// chips in the same order: in a reduce_scatter each of them takes its block of the one sum of their
// whole shards, which is made tile by tile, side by side in memory.

/// Whether every chip's pieces lie at one place of their shards, so that sums can be made together,
/// and the chips that share a sum take no less of it than it holds, so that nothing is summed in
/// vain.
bool sums_are_joint(const Moves& moves, const ChipGroups& groups);

/// Makes sums[0..n) of the elements [begin, begin + n) of these chips' shards.
using MakeTile = std::function<void(const std::vector<int>& sources, std::int64_t begin,
                                    std::int64_t n, float* sums)>;
/// Every chip's sums, made in tiles of `tile` elements. Throws std::logic_error where some chip's
/// pieces lie at different places of their shards.
ChipArrays<float> joint_tiles(const Moves& moves, const ChipGroups& groups, std::int64_t tile,
                              Threads& threads, const MakeTile& make);

/// The exact sums, each rounded once.
ChipArrays<float> joint_sums(const Summands& from, const Moves& moves, const ChipGroups& groups,
                             Threads& threads);
/// The f32 sums in the order of the group, from the first summand.
ChipArrays<float> joint_f32_sums(const ChipArrays<float>& from, const Moves& moves,
                                 const ChipGroups& groups, Threads& threads);

}  // namespace shardproof
