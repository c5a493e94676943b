#pragma once

#include <cstdint>
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
  for (int chip = torus.chips(); chip-- > 0;) {
    const auto& shard = shard_of(chip);
    if (shard.empty()) continue;
    judged_elements(layout, shape, torus, chip, [&](std::int64_t local, std::int64_t global) {
      whole[static_cast<std::size_t>(global)] = shard[static_cast<std::size_t>(local)];
      return false;
    });
  }
  return whole;
}

}  // namespace shardproof
