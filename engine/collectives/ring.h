#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layout/torus.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// A dim that a looped einsum takes chunk by chunk as the chunks travel around the ring of the
/// chips along `axes` (paper §3.5). Chunk c is the block with index c over the axes, major to
/// minor; so is chip c of the ring.
struct Ring {
  char dim = 0;
  Axes axes = {};
  Loop loop = Loop::none;
  bool operator==(const Ring&) const = default;
};

/// The part of a chunk that a chip works on at once: all of it, or, of n indices of the looped dim,
/// the first ⌈n/2⌉ or the others.
enum class ChunkPart { whole, first_half, second_half };

/// A chunk of a ring, or a half of one, in the order in which a chip uses it or adds to it.
struct RingChunk {
  std::int64_t chunk = 0;
  ChunkPart part = ChunkPart::whole;
  std::int64_t round = 0;  ///< 0 precedes the first move
  bool operator==(const RingChunk&) const = default;
};

/// all_gather and einsum: the chunks in the order in which chip `chip` of a ring of K uses them.
///   one-way    chip, chip−1, …, chip+1: buffers move to the next chip after each round
///   both-full  chip, then in round i chip−i and chip+i, while there are any: ⌈(K−1)/2⌉ chunks
///              come one way and ⌊(K−1)/2⌋ the other
///   both-half  chip, then in round i the first half of chip−i and the second half of chip+i
/// Without a loop 0, 1, …, K−1.
std::vector<RingChunk> gathered_chunks(Loop loop, std::int64_t K, std::int64_t chip);

/// einsum and reduce_scatter: a chunk's sum is the chain of the partial sums of chips `first`, plus
/// the chain of `second`, which travels the other way round; `second` may be empty.
struct RingSum {
  std::vector<std::int64_t> first, second;
};
/// The chips of a ring of K whose partial sums of chunk c are added, in order. both-half has one
/// order for each half; the other loops have one for the whole chunk.
///   one-way    c+1, c+2, …, c: the sum moves to the next chip after each round and ends on c
///   both-full  (c−⌈(K−1)/2⌉, …, c−1, c) + (c+⌊(K−1)/2⌋, …, c+1)
///   both-half  the first half as one-way, the second c−1, c−2, …, c
RingSum scattered_sum(Loop loop, std::int64_t K, std::int64_t chunk, ChunkPart part);

/// The chunk, of the travelling sums, that chip `chip` adds its partial sum to in each round: the
/// inverse of scattered_sum.
std::vector<RingChunk> scattered_chunks(Loop loop, std::int64_t K, std::int64_t chip);

/// The number of the first half's indices, of n.
inline std::int64_t first_half(std::int64_t n) { return (n + 1) / 2; }

}  // namespace shardproof
