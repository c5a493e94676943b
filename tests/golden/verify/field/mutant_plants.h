#pragma once

// Faults inside an op's own code, imitated by hooks: the op is computed anew, by the same
// functions, from other operands or by another plan.
#include "tests/golden/verify/field/mutant.h"

namespace shardproof::plants {

using Hooks = std::function<void(const Case&, const LatestValues&, FaultHooks&)>;

/// The step `value` is followed by an all_reduce over `axes` of its result.
Hooks reduced_again(const std::string& value, const std::string& axes);
/// A weight's blocks of `dim` lie in this order of axes, under the label of another.
Hooks stored_as_order(const std::vector<std::string>& weights, char dim, const std::string& axes);
/// Keys and values are written `by` slots further on, but inside the cache, in passes of this name;
/// what is not written is 0.
Hooks appended_at(std::int32_t by, const std::string& pass);
/// q and k are rotated for positions `by` further on, in passes of this name.
Hooks rotated_at(std::int32_t by, const std::string& pass);
/// Norms divide by the extent of a chip's own block of E.
Hooks local_norms();
/// Query head h of a chip reads its kv head h mod K in place of h div G.
Hooks tiled_kv_heads();
/// A chip returns a row of its own table also for ids that it has not.
Hooks unmasked_lookup();
/// Ids of candidates count from each block's own first one.
Hooks ids_without_offset();
/// The steps gather their groups in the opposite order of axes.
Hooks gathered_reversed(const std::vector<std::string>& values);
/// Every all_gather places what comes round its ring as if it came from the other side.
Hooks ring_of_other_direction();
/// Every all_gather begins with the chip's own block.
Hooks gathered_as_arrived();
/// Every reduce_scatter forgets the last chip of the group.
Hooks one_partial_sum_lost();
/// The step, or of no name every step, of this program moves nothing between chips.
Hooks relabelled(const std::string& value, const std::string& program);

}  // namespace shardproof::plants
