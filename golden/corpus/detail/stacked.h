#pragma once

#include <cstdint>
#include <vector>

#include "engine/layout/torus.h"
#include "golden/compare/block_map.h"

namespace shardproof::corpus {

/// Returns [X, Y, Z, *local], the shape of the stacked shards of all chips.
inline Shape stacked_shape(const Torus& torus, const Shape& local) {
  Shape shape{torus.size(Axis::x), torus.size(Axis::y), torus.size(Axis::z)};
  shape.insert(shape.end(), local.begin(), local.end());
  return shape;
}

/// Returns the shards of all chips, concatenated, cut from a whole tensor by the judge's map;
/// part_of(chip) is the tensor that this chip's shard is a block of.
template <class T, class PartOf>
std::vector<T> stacked(const Layout& layout, const Shape& shape, const Torus& torus,
                       PartOf&& part_of) {
  std::vector<T> all;
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const std::vector<T>& whole = part_of(chip);
    judged_elements(layout, shape, torus, chip, [&](std::int64_t, std::int64_t global) {
      all.push_back(whole[static_cast<std::size_t>(global)]);
      return false;
    });
  }
  return all;
}

/// Returns every ordered list of different axes, the empty one first: 16.
std::vector<Axes> ordered_axes();

}  // namespace shardproof::corpus
