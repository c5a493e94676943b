#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "golden/compare/block_map.h"

namespace shardproof {

/// Returns whether each chip's shard has the size that the layout implies.
template <class Chips>
bool fits(const Layout& layout, const Shape& shape, const Torus& torus, const Chips& chips) {
  if (shape.empty() || !judged_divides(layout, shape, torus)) return false;
  const std::int64_t size = element_count(judged_block(layout, shape, torus));
  return std::all_of(chips.begin(), chips.end(),
                     [&](const auto& chip) { return std::ssize(chip) == size; });
}

/// Returns whether each chip holds its block of the whole tensor, bit for bit, so that the whole
/// tensor and the layout are sufficient.
template <class T, class Chips>
bool are_blocks_of(const std::vector<T>& whole, const Layout& layout, const Shape& shape,
                   const Torus& torus, const Chips& chips) {
  static_assert(std::has_unique_object_representations_v<T> || std::is_same_v<T, float>);
  if (whole.empty()) return true;
  const JudgedBlocks blocks(layout, shape, torus);
  const auto run = static_cast<std::size_t>(blocks.run());
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const T* shard = chips[static_cast<std::size_t>(chip)].data();
    for (const std::int64_t first : blocks.runs()) {
      const T* const of_whole = whole.data() + blocks.first(chip) + first;
      if (std::memcmp(shard, of_whole, run * sizeof(T)) != 0) return false;
      shard += run;
    }
  }
  return true;
}

/// Returns the lowest-numbered replica of `chip`, along the axes that the layout lacks.
inline int first_copy(const Layout& layout, const Torus& torus, int chip) {
  const std::array<int, 3> at = judged_coordinates(torus, chip);
  int first = 0;
  for (const Axis axis : {Axis::x, Axis::y, Axis::z}) {
    bool named = layout.partial().has(axis);
    for (const Layout::Dim& dim : layout.dims()) named = named || dim.axes.has(axis);
    first = first * torus.size(axis) + (named ? at[static_cast<std::size_t>(axis)] : 0);
  }
  return first;
}

/// Returns whether all replicas of a shard have the same bits.
template <class Chips>
bool copies_agree(const Layout& layout, const Torus& torus, const Chips& chips) {
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const auto& mine = chips[static_cast<std::size_t>(chip)];
    const auto& first = chips[static_cast<std::size_t>(first_copy(layout, torus, chip))];
    if (mine.size() != first.size() ||
        (!mine.empty() &&
         std::memcmp(mine.data(), first.data(), mine.size() * sizeof(mine[0])) != 0))
      return false;
  }
  return true;
}

}  // namespace shardproof
