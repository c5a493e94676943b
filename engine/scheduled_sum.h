#pragma once

#include <cstdint>
#include <vector>

#include "engine/ring.h"
#include "weights/numerics.h"

namespace shardproof {

/// In which order a reduction adds the partials of its group.
struct SumOrder {
  Schedule schedule = Schedule::group;
  Loop loop = Loop::none;  ///< of a looped einsum and reduce_scatter, in place of the schedule
  /// The place of the dim that a reduce_scatter scatters: of it the chunks have two halves.
  std::size_t dim = 0;

  SumOrder() = default;
  SumOrder(Schedule of, Loop looped = Loop::none, std::size_t scattered = 0)
      : schedule(of), loop(looped), dim(scattered) {}

  /// The loop whose order the schedule's is; none of group and tree.
  Loop ring() const {
    if (loop != Loop::none) return loop;
    if (schedule == Schedule::ring) return Loop::one_way;
    return schedule == Schedule::biring ? Loop::both_half : Loop::none;
  }
};

/// out[i] = the f32 sum of terms[0][i] … terms[K−1][i] for i in [0, n), in the order of the
/// schedule (docs/spec.md section 1.2), starting from the first partial, one f32 addition each:
///   group  0, 1, …, K−1
///   tree   neighbours pair up level by level; an odd last one passes up unchanged
///   rings  as scattered_sum (engine/ring.h) has it for this chunk and its part: the sums travel
///          and end on the chunk's owner
/// K ≥ 1. The terms are in the order of the group: the chips' block index over the op's axes.
void scheduled_sum(const SumOrder& order, const std::vector<const float*>& terms,
                   std::int64_t chunk, ChunkPart part, std::int64_t n, float* out);

/// The ring's chunk of element i of n in an all_reduce over K chips, ⌊i·K/n⌋, and a chunk's first
/// element.
inline std::int64_t chunk_of(std::int64_t i, std::int64_t n, std::int64_t K) { return i * K / n; }
inline std::int64_t chunk_begin(std::int64_t chunk, std::int64_t n, std::int64_t K) {
  return (chunk * n + K - 1) / K;
}

}  // namespace shardproof
