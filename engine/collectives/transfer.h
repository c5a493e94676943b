#pragma once

#include "engine/collectives/moves.h"
#include "engine/collectives/summation.h"
#include "engine/numeric/threads.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"

namespace shardproof {

// The level below engine/collectives/collectives.h: executes a plan of who receives what as given,
// right or wrong. The caller gives the result's layout and shape; all throw Error("sharded_c1",
// ...) if these do not fit what the plan yields.

/// Executes a plain move (all_gather, all_to_all, permute_axes, slice, last): every chip's new
/// shard is assembled from the pieces it receives. Partial sums travel with value, bound and
/// origins. Lockstep: a pure function of the shards.
Sharded transfer(const Sharded& value, const Moves& moves, const Layout& layout, const Shape& shape,
                 Threads& threads);
/// Moves a complete value to the chips of another torus (engine/collectives/crossing.h).
Sharded transfer(const Sharded& value, const Moves& moves, const Torus& target,
                 const Layout& layout, const Shape& shape, Threads& threads);

/// Executes a reduction (reduce_scatter, all_reduce): every chip sums the pieces it receives. If
/// `layout` is complete the sums are rounded once; otherwise they stay partial, values and bounds
/// added and origins concatenated (docs/spec.md section 4). Partial sums of the f32 regime are
/// added as f32, as `how` says (scheduled_sum.h). Throws Error("transfer_c2", ...) if sums stay
/// partial and the chips do not receive equally many pieces.
Sharded reduce(const Sharded& value, const Moves& moves, const Layout& layout, const Shape& shape,
               Threads& threads, const Summation& how = {});

/// Executes an all_reduce of partial maxima: every chip takes the largest of the pieces it
/// receives; -inf is that of nothing. In the field regime partial maxima are sums, which are added.
/// Throws Error("max_empty", ...) if an element of a complete result is of nothing.
Sharded reduce_by_max(const Sharded& value, const Moves& moves, const Layout& layout,
                      const Shape& shape, Threads& threads);

}  // namespace shardproof
