#pragma once

#include <string_view>

#include "engine/shards/sharded.h"

namespace shardproof {

// int8 quantization of weights (docs/spec.md section 2.4). Every chip quantizes its own shards, so
// nothing may depend on the layout. Codes are f32 values, whole numbers from -127 to 127.

/// The largest |w| of each output channel, over the `contracted` leading dims of w [EF], [HQE]: per
/// shard, then a max reduction over the axes that shard those dims. The result has the other dims,
/// in w's layout.
Sharded absmax(const Sharded& w, std::size_t contracted);

/// The element-wise maximum of a and b.
Sharded greater(const Sharded& a, const Sharded& b);

/// The scale (float)(absmax/127.0), or 1 where that is 0.
Sharded scale_of_absmax(const Sharded& absmax);

/// The codes of w: (double)w/(double)scale to the nearest whole number, ties to even, clipped to
/// -127 ... 127. `scale` has w's trailing dims, in their layout.
Sharded codes(const Sharded& w, const Sharded& scale);

}  // namespace shardproof
