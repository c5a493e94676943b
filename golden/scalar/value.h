#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "weights/base/tensor.h"
#include "weights/model/numerics.h"

namespace shardproof::scalar {

/// A logical tensor of the scalar model. A complete value has one part, the global tensor: sharding
/// only decides who holds what, so gathering, slicing or exchanging shards changes nothing. A
/// partial value has one global tensor for each combination of coordinates on its partial axes, in
/// x, y, z order, z fastest.
struct Value {
  Layout layout;  ///< as declared; determines which chip owns what if an order depends on it
  Shape shape;    ///< global
  std::vector<std::vector<float>> parts;
  std::vector<std::int32_t> ints;  ///< instead of parts, for integer values
  /// For the result of a looped all_gather: the ring whose chunks its einsums consume.
  char ring_dim = 0;
  Axes ring = {};
  Loop loop = Loop::none;

  bool integer() const { return parts.empty(); }
  const std::vector<float>& whole() const { return parts.at(0); }
};

/// Coordinates on the three torus axes.
struct Place {
  std::int64_t at[3] = {0, 0, 0};
  std::int64_t& operator[](Axis axis) { return at[static_cast<std::size_t>(axis)]; }
  std::int64_t operator[](Axis axis) const { return at[static_cast<std::size_t>(axis)]; }
};

/// Returns the index of the part, of a value with these partial axes, that belongs to a place.
inline std::size_t part_of(const Axes& partial, const Torus& torus, const Place& place) {
  std::int64_t part = 0;
  for (Axis a : {Axis::x, Axis::y, Axis::z})
    if (partial.has(a)) part = part * torus.size(a) + place[a];
  return static_cast<std::size_t>(part);
}

/// Calls visit(place) for every combination of coordinates on `axes`, the last of x, y, z fastest.
template <class Visit>
void for_each_place(const Axes& axes, const Torus& torus, Visit&& visit) {
  const auto size = [&](Axis a) { return axes.has(a) ? torus.size(a) : 1; };
  for (int x = 0; x < size(Axis::x); ++x)
    for (int y = 0; y < size(Axis::y); ++y)
      for (int z = 0; z < size(Axis::z); ++z) visit(Place{{x, y, z}});
}

}  // namespace shardproof::scalar
