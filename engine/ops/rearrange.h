#pragma once

#include <cstdint>

#include "engine/numeric/threads.h"
#include "engine/ops/local_ops.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"

namespace shardproof {

/// (-b, a) of the pairs (a, b) of the first `channels` elements along a dim, which are half as far
/// apart (half_split) or neighbours (interleaved); +0 beyond them.
Sharded turn_pairs(const Sharded& x, char dim, RopePairs pairs, std::int64_t channels,
                   Threads& threads);

/// The table's elements at an index (int32) of its first dim, which is not sharded: the index's
/// dims, then the table's others. -0 becomes +0, as in a sum over a table's shards. Throws
/// Error("gather_range", ...) on an index outside the table.
Sharded gather_rows(const Sharded& index, const Sharded& table, const Layout& layout,
                    const Shape& shape, Threads& threads);

/// The cache of each row [B..M..] after the slots of the prefix that it continues, of `prefixes`
/// [N..T..]: row i of a batch of B continues prefix ⌊i·N/B⌋, which lies on its chip. `shape`: that
/// of the result, with M = T + the cache's slots.
Sharded with_prefix(const Sharded& prefixes, const Sharded& cache, const Shape& shape,
                    Threads& threads);

}  // namespace shardproof
