#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "golden/compare/block_map.h"

namespace shardproof {

/// The global tensor, row-major, put together from the chips' blocks by the judge's map; of
/// replicas the lowest-numbered chip's counts. shard_of(chip) is a chip's block, or empty where it
/// has none to give.
template <class T, class ShardOf>
std::vector<T> assembled(const Layout& layout, const Shape& shape, const Torus& torus,
                         ShardOf&& shard_of) {
  std::vector<T> whole(static_cast<std::size_t>(element_count(shape)));
  const JudgedBlocks blocks(layout, shape, torus);
  std::set<std::int64_t> filled;  // blocks by where they begin
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const auto& shard = shard_of(chip);
    if (shard.empty() || !filled.insert(blocks.first(chip)).second) continue;
    auto from = shard.begin();
    for (const std::int64_t run : blocks.runs()) {
      std::copy_n(from, blocks.run(), whole.begin() + blocks.first(chip) + run);
      from += blocks.run();
    }
  }
  return whole;
}

}  // namespace shardproof
