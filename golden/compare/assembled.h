#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "golden/compare/block_map.h"

namespace shardproof {

/// Assembles the global tensor, row-major, from the chips' blocks by the judge's map; of replicas
/// the lowest-numbered chip's is used. shard_of(chip) returns a chip's block, or an empty one if
/// the chip provides none. `whole`: memory for the result.
template <class T, class ShardOf>
std::vector<T> assembled(const Layout& layout, const Shape& shape, const Torus& torus,
                         ShardOf&& shard_of, std::vector<T> whole = {}) {
  whole.assign(static_cast<std::size_t>(element_count(shape)), T{});
  const JudgedBlocks blocks(layout, shape, torus);
  std::set<std::int64_t> filled;  // first elements of the blocks that were copied
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
