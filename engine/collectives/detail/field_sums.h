#pragma once

#include "engine/collectives/chip_groups.h"
#include "engine/collectives/moves.h"
#include "engine/numeric/threads.h"
#include "engine/shards/sharded.h"

namespace shardproof {

/// Every chip's sums of the pieces it receives, of numbers of the field regime; sums of another
/// sort are sums of numbers made of them first (docs/field.md section 1.4). `groups`: of chips that
/// receive the same pieces.
FieldShards field_sums(const FieldShards& from, const Moves& moves, const ChipGroups& groups,
                       Threads& threads);

/// The same elements as numbers: of another sort than numbers by its function (docs/field.md
/// section 1.4).
FieldShards as_numbers(const FieldShards& from, Threads& threads);

}  // namespace shardproof
