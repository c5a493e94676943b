#pragma once

#include <string_view>

#include "engine/shards/sharded.h"

namespace shardproof {

// int8 quantization of weights (docs/spec.md section 2.4). Every chip quantizes its own shards, so
// nothing may depend on the layout. Codes are f32 values, whole numbers from -127 to 127.

/// The largest |w| of each output channel, over all letters but `channels`: per shard, then a max
/// reduction over the axes that shard those dims. The result has the channels, in this order and in
/// w's layout.
Sharded absmax(const Sharded& w, std::string_view channels);

/// The element-wise maximum of a and b.
Sharded greater(const Sharded& a, const Sharded& b);

/// The scale (float)(absmax/127.0), or 1 where that is 0.
Sharded scale_of_absmax(const Sharded& absmax);

/// The codes of w: (double)w/(double)scale to the nearest whole number, ties to even, clipped to
/// -127 ... 127. `scale` has some of w's letters, in their layout.
Sharded codes(const Sharded& w, const Sharded& scale);

}  // namespace shardproof
