#pragma once

#include <cstdint>
#include <vector>

#include "engine/collectives/ring.h"
#include "engine/collectives/summation.h"

namespace shardproof {

/// out[i] = the f32 sum of terms[0][i] … terms[K−1][i] for i in [0, n), in the order of the
/// schedule or the loop (docs/spec.md section 1.2), starting from the first partial sum, one f32
/// addition each:
///   group  0, 1, …, K−1
///   tree   neighbours pair up level by level; an odd last one passes up unchanged
///   rings  as scattered_sum (engine/collectives/ring.h) defines for this chunk and its part: the
///          sums travel and end on the chunk's owner
/// With acc=bf16 every addition's result is rounded to bf16. With wire=bf16 and K > 1 the terms are
/// rounded before they are added (group, tree), or the sums so far where they travel on (rings);
/// the last sum is not rounded. K ≥ 1. The terms are in group order: the chips' block index over
/// the op's axes.
void scheduled_sum(const Summation& how, const std::vector<const float*>& terms, std::int64_t chunk,
                   ChunkPart part, std::int64_t n, float* out);

/// The ring's chunk of element i of n in an all_reduce over K chips is ⌊i·K/n⌋; chunk_begin returns
/// a chunk's first element.
inline std::int64_t chunk_of(std::int64_t i, std::int64_t n, std::int64_t K) { return i * K / n; }
inline std::int64_t chunk_begin(std::int64_t chunk, std::int64_t n, std::int64_t K) {
  return (chunk * n + K - 1) / K;
}

}  // namespace shardproof
