#include "engine/collectives/detail/f32_sums.h"

#include <algorithm>
#include <vector>

#include "engine/collectives/detail/joint_sums.h"
#include "engine/collectives/detail/runs.h"
#include "engine/collectives/scheduled_sum.h"
#include "weights/base/bf16.h"

namespace shardproof {
namespace {

/// to = from, or to += from, on all runs of N elements.
template <std::int64_t N>
void put_runs(const Runs& runs, const float* from, float* to, bool add) {
  for (std::size_t r = 0; r < runs.all.size(); ++r) {
    const Run& run = runs.all[r];
    prefetch_ahead(runs, r, from);
    const float* const in = from + run.from;
    float* const out = to + run.to;
    float sum[static_cast<std::size_t>(N)];
    for (std::int64_t i = 0; i < N; ++i) sum[i] = add ? out[i] + in[i] : in[i];
    for (std::int64_t i = 0; i < N; ++i) out[i] = sum[i];
  }
}

void put_runs(const Runs& runs, const float* from, float* to, bool add) {
  switch (runs.length) {
    case 4:
      return put_runs<4>(runs, from, to, add);
    case 8:
      return put_runs<8>(runs, from, to, add);
    case 16:
      return put_runs<16>(runs, from, to, add);
    case 32:
      return put_runs<32>(runs, from, to, add);
    default:
      break;
  }
  for (const Run& run : runs.all)
    for (std::int64_t i = 0; i < runs.length; ++i)
      to[run.to + i] = add ? to[run.to + i] + from[run.from + i] : from[run.from + i];
}

/// The part of its chunk that an element is in, and where that part ends.
struct PartRun {
  ChunkPart part = ChunkPart::whole;
  std::int64_t end = 0;  ///< the first element of another part
};

/// In the chunk that a reduce_scatter leaves on a chip, the halves are those of the scattered dim.
PartRun scattered_part(const Shape& local, std::size_t dim, std::int64_t element) {
  std::int64_t stride = 1;
  for (std::size_t d = dim + 1; d < local.size(); ++d) stride *= local[d];
  const std::int64_t row = local[dim] * stride;
  const std::int64_t begin = element / row * row;
  const std::int64_t half = begin + first_half(local[dim]) * stride;
  if (element < half) return {ChunkPart::first_half, half};
  return {ChunkPart::second_half, begin + row};
}

/// In a chunk of an all_reduce, whose shards keep their size, the halves are those of its elements.
PartRun shard_part(std::int64_t chunk, std::int64_t count, std::int64_t K, std::int64_t element) {
  const std::int64_t begin = chunk_begin(chunk, count, K);
  const std::int64_t end = chunk_begin(chunk + 1, count, K);
  const std::int64_t half = begin + first_half(end - begin);
  if (element < half) return {ChunkPart::first_half, half};
  return {ChunkPart::second_half, end};
}

}  // namespace

// In an all_reduce, whose shards keep their size, the ring's chunks are K runs of the shard's
// elements, and their halves those of the runs. In a reduce_scatter a chip receives the chunk that
// is its block, and the halves are those of the scattered dim.
ChipArrays<float> f32_sums(const ChipArrays<float>& from, const Moves& moves, const Summation& how,
                           ChipGroups groups, Threads& threads) {
  const bool whole = moves.from_local == moves.to_local;
  const bool one_way = how.ring() == Loop::one_way;
  const bool group = how.ring() == Loop::none && how.order == Schedule::group;
  const bool halves = how.ring() == Loop::both_half;
  const std::int64_t count = element_count(moves.to_local);
  const Runs runs(moves);
  // The index of the chip's own piece: in a reduce_scatter, the index of its chunk in the ring.
  const auto own_place = [&](std::int64_t chip) {
    const std::vector<Piece>& pieces = moves.pieces[static_cast<std::size_t>(chip)];
    std::int64_t place = 0;
    for (std::size_t j = 0; j < pieces.size(); ++j)
      if (pieces[j].from_chip == chip) place = static_cast<std::int64_t>(j);
    return place;
  };
  // All chips add in one order: sums shared by several chips are computed once.
  if (group && !how.rounds() && threads.shares() && sums_are_joint(moves, groups))
    return joint_f32_sums(from, moves, groups, threads);
  if (!whole) groups.split(own_place);
  const auto sum = [&](std::int64_t chip, float* to) {
    const std::vector<Piece>& pieces = moves.pieces[static_cast<std::size_t>(chip)];
    const auto K = static_cast<std::int64_t>(pieces.size());
    const std::int64_t mine = own_place(chip);
    if (!how.rounds() && (group || (one_way && !whole))) {
      // One order for the whole shard: each term is added to all of it.
      const std::int64_t first = one_way ? (mine + 1) % K : 0;
      for (std::int64_t j = 0; j < K; ++j) {
        const Piece& piece = pieces[static_cast<std::size_t>((first + j) % K)];
        put_runs(runs, from[static_cast<std::size_t>(piece.from_chip)].data() + piece.from, to,
                 j > 0);
      }
      return;
    }
    std::vector<const float*> terms(pieces.size());
    const std::int64_t n = runs.length;
    for (const Run& run : runs.all)
      for (std::int64_t done = 0; done < n;) {
        const std::int64_t at = run.to + done;
        const std::int64_t chunk = whole ? chunk_of(at, count, K) : mine;
        PartRun part{ChunkPart::whole, whole ? chunk_begin(chunk + 1, count, K) : run.to + n};
        if (halves)
          part =
              whole ? shard_part(chunk, count, K, at) : scattered_part(moves.to_local, how.dim, at);
        const std::int64_t length = std::min(part.end, run.to + n) - at;
        for (std::size_t j = 0; j < pieces.size(); ++j)
          terms[j] = from[static_cast<std::size_t>(pieces[j].from_chip)].data() + pieces[j].from +
                     run.from + done;
        scheduled_sum(how, terms, chunk, part.part, length, to + at);
        done += length;
      }
    // In an all_reduce the finished chunks travel as well.
    if (whole && K > 1 && how.wire == NumberFormat::bf16)
      std::transform(to, to + count, to, round_to_bf16);
  };
  return made_by<float>(groups, from.size(), static_cast<std::size_t>(count), threads, sum);
}

}  // namespace shardproof
