#pragma once

#include "engine/collectives/chip_groups.h"
#include "engine/collectives/moves.h"
#include "engine/numeric/threads.h"
#include "engine/shards/sharded.h"

namespace shardproof {

/// Every chip's sums of the field elements it receives; elements of another sort are converted by
/// as_numbers first (docs/field.md section 1.4). `groups`: chips that receive the same pieces.
FieldShards field_sums(const FieldShards& from, const Moves& moves, const ChipGroups& groups,
                       Threads& threads);

/// Converts elements to the sort `number`: elements of another sort by that sort's function
/// (docs/field.md section 1.4).
FieldShards as_numbers(const FieldShards& from, Threads& threads);

}  // namespace shardproof
