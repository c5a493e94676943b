#pragma once

#include "engine/shards/sharded.h"

// Ops as a wrong implementation computes them.

namespace shardproof::faults {

/// The keys or values that the query heads of each chip read if head h reads h mod K in place of h
/// div G: one for each query head of q [BLHQ], of a cache [BMKQ].
Sharded with_tiled_heads(const Sharded& q, const Sharded& kv);

/// Fills `value` with rows of the table [VE] for ids [BL] of which those of other chips' blocks are
/// clamped to the chip's own, and not masked.
void look_up_unmasked(const Sharded& ids, const Sharded& table, Sharded& value);

}  // namespace shardproof::faults
