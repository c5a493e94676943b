#include "engine/collectives/detail/joint_sums.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "engine/collectives/detail/runs.h"
#include "engine/numeric/detail/rounding_test.h"
#include "engine/numeric/detail/tile_sum.h"

namespace shardproof {
namespace {

/// Chips that receive from the same chips, in the same order.
struct Joint {
  std::vector<int> sources;
  std::vector<int> receivers;
};

std::int64_t first_of(const Moves& moves, int chip) {
  return moves.pieces[static_cast<std::size_t>(chip)].front().from;
}

/// Returns an empty list if a chip has no pieces, or pieces at different offsets of their shards.
std::vector<Joint> joints(const Moves& moves, const ChipGroups& groups) {
  std::vector<Joint> all;
  std::map<std::vector<int>, std::size_t> of_sources;
  for (const int chip : groups.first_chips()) {
    const std::vector<Piece>& pieces = moves.pieces[static_cast<std::size_t>(chip)];
    if (pieces.empty()) return {};
    std::vector<int> sources;
    for (const Piece& piece : pieces) {
      if (piece.from != pieces.front().from) return {};
      sources.push_back(piece.from_chip);
    }
    const auto [at, is_new] = of_sources.try_emplace(sources, all.size());
    if (is_new) all.push_back({std::move(sources), {}});
    all[at->second].receivers.push_back(chip);
  }
  return all;
}

/// Copies the elements of a tile [begin, begin + n) of the senders' shards that are in the block
/// beginning at `block`.
void put(const Runs& runs, std::int64_t block, std::int64_t begin, std::int64_t n,
         const float* sums, float* to) {
  const auto after =
      std::upper_bound(runs.all.begin(), runs.all.end(), begin - block - runs.length,
                       [](std::int64_t end, const Run& run) { return end < run.from; });
  for (auto run = after; run != runs.all.end() && block + run->from < begin + n; ++run) {
    const std::int64_t there = block + run->from;
    const std::int64_t first = std::max(there, begin);
    const std::int64_t last = std::min(there + runs.length, begin + n);
    std::copy_n(sums + (first - begin), last - first, to + run->to + (first - there));
  }
}

/// Elements of a tile: few enough to stay in a core's caches.
constexpr std::int64_t kTile = 4096;

}  // namespace

bool sums_are_joint(const Moves& moves, const ChipGroups& groups) {
  const std::vector<Joint> all = joints(moves, groups);
  return !all.empty() && std::all_of(all.begin(), all.end(), [&](const Joint& joint) {
    return std::ssize(joint.receivers) * element_count(moves.to_local) >=
           element_count(moves.from_local);
  });
}

ChipArrays<float> joint_tiles(const Moves& moves, const ChipGroups& groups, std::int64_t tile,
                              Threads& threads, const MakeTile& make) {
  const std::vector<Joint> all = joints(moves, groups);
  if (all.empty()) throw std::logic_error("sums of pieces from different places are not joint");
  const auto count = static_cast<std::size_t>(element_count(moves.to_local));
  ChipArrays<float> made(moves.pieces.size());
  std::vector<float*> to(made.size());
  for (const int chip : groups.first_chips()) {
    const auto c = static_cast<std::size_t>(chip);
    made[c].resize(count);
    to[c] = made[c].data();
  }
  const Runs runs(moves);
  const std::int64_t shard = element_count(moves.from_local);
  const std::int64_t tiles = (shard + tile - 1) / tile;
  threads.for_each(std::ssize(all) * tiles, [&](std::int64_t i) {
    const Joint& joint = all[static_cast<std::size_t>(i / tiles)];
    const std::int64_t begin = i % tiles * tile;
    const std::int64_t n = std::min(tile, shard - begin);
    Buffer<float> sums(static_cast<std::size_t>(n));
    make(joint.sources, begin, n, sums.data());
    for (const int receiver : joint.receivers)
      put(runs, first_of(moves, receiver), begin, n, sums.data(),
          to[static_cast<std::size_t>(receiver)]);
  });
  groups.share(made);
  return made;
}

ChipArrays<float> joint_sums(const PartialTiles& from, const Moves& moves, const ChipGroups& groups,
                             Threads& threads) {
  constexpr std::int64_t kRows = 32;  // enough rows for an efficient product
  const std::int64_t tile = from.row() * std::max(kRows, kTile / from.row());
  const auto make = [&](const std::vector<int>& sources, std::int64_t begin, std::int64_t n,
                        float* sums) {
    TileSum sum;
    sum.start(n);
    for (const int source : sources) from.add_to(sum, source, begin);
    const double* const bounds = sum.finish();
    decide_each(sum.values(), bounds, n, sums, [&](std::int64_t i) {
      std::vector<Element> elements;
      for (const int source : sources) elements.push_back({source, begin + i});
      return from.exact_sum(elements);
    });
  };
  return joint_tiles(moves, groups, tile, threads, make);
}

ChipArrays<float> joint_f32_sums(const ChipArrays<float>& from, const Moves& moves,
                                 const ChipGroups& groups, Threads& threads) {
  const auto make = [&](const std::vector<int>& sources, std::int64_t begin, std::int64_t n,
                        float* sums) {
    const auto of = [&](std::size_t j) {
      return from[static_cast<std::size_t>(sources[j])].data() + begin;
    };
    std::copy_n(of(0), n, sums);
    for (std::size_t j = 1; j < sources.size(); ++j) {
      const float* const term = of(j);
      for (std::int64_t i = 0; i < n; ++i) sums[i] += term[i];
    }
  };
  return joint_tiles(moves, groups, kTile, threads, make);
}

}  // namespace shardproof
