#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layout/torus.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// A dim that a looped einsum takes chunk by chunk, as they come round the ring of the chips along
/// `axes` (paper §3.5). Chunk c is the block with index c over the axes, major to minor; so is chip
/// c of the ring.
struct Ring {
  char dim = 0;
  Axes axes = {};
  Loop loop = Loop::none;
  bool operator==(const Ring&) const = default;
};

/// What of a chunk a chip works on at once: all of it, or of n indices of the looped dim the first
/// ⌈n/2⌉ or the rest.
enum class ChunkPart { whole, first_half, second_half };

/// A chunk of a ring, or a half of one, in the order in which a chip uses it or adds to it.
struct RingChunk {
  std::int64_t chunk = 0;
  ChunkPart part = ChunkPart::whole;
  std::int64_t round = 0;  ///< 0 is before anything has moved
  bool operator==(const RingChunk&) const = default;
};

/// all_gather and einsum: the chunks in the order in which chip `chip` of a ring of K uses them.
///   one-way    chip, chip−1, …, chip+1: buffers move to the next chip after each round
///   both-full  chip, then in round i chip−i and chip+i, while there are any: ⌈(K−1)/2⌉ chunks
///              come one way and ⌊(K−1)/2⌋ the other
///   both-half  chip, then in round i the first half of chip−i and the second half of chip+i
/// Without a loop 0, 1, …, K−1.
std::vector<RingChunk> gathered_chunks(Loop loop, std::int64_t K, std::int64_t chip);

/// einsum and reduce_scatter: a chunk's sum is that of the partials of chips `first`, one after the
/// other, plus that of `second`, which comes the other way round; `second` may be empty.
struct RingSum {
  std::vector<std::int64_t> first, second;
};
/// The chips whose partials of chunk c are added, in their order, of a ring of K. Of both-half the
/// order of the part; the others have one for the whole chunk.
///   one-way    c+1, c+2, …, c: the sum moves to the next chip after each round and ends on c
///   both-full  (c−⌈(K−1)/2⌉, …, c−1, c) + (c+⌊(K−1)/2⌋, …, c+1)
///   both-half  the first half as one-way, the second c−1, c−2, …, c
RingSum scattered_sum(Loop loop, std::int64_t K, std::int64_t chunk, ChunkPart part);

/// The chunk that chip `chip` adds its partial to in each round, of the sums that move on: the
/// inverse of scattered_sum.
std::vector<RingChunk> scattered_chunks(Loop loop, std::int64_t K, std::int64_t chip);

/// How many of n indices are in the first half.
inline std::int64_t first_half(std::int64_t n) { return (n + 1) / 2; }

}  // namespace shardproof
