#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"

namespace shardproof {

/// RapidCheck's inRange starts small and grows; these tori are small enough at full size.
inline int draw_int(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}

/// Unequal, odd and degenerate tori of at most 30 chips, tagged by kind for the coverage report.
inline Torus draw_torus() {
  const auto size = [] { return *rc::gen::element(1, 2, 3, 4, 5); };
  int X = size(), Y = size(), Z = size();
  while (X * Y * Z > 30) (X >= Y && X >= Z ? X : Y >= Z ? Y : Z) -= 1;
  RC_CLASSIFY(X != Y && Y != Z && X != Z, "torus: X, Y, Z all unequal");
  RC_CLASSIFY(X % 2 == 1 && Y % 2 == 1 && Z % 2 == 1 && X * Y * Z > 1, "torus: all odd");
  RC_CLASSIFY(X == 1 || Y == 1 || Z == 1, "torus: an axis of 1");
  RC_CLASSIFY(X * Y * Z == 1, "torus: one chip");
  RC_CLASSIFY(X == 3 || Y == 3 || Z == 3, "torus: an axis of 3");
  return Torus(X, Y, Z);
}

/// x, y and z in a random order.
inline std::vector<Axis> draw_order() {
  std::vector<Axis> order{Axis::x, Axis::y, Axis::z};
  for (std::size_t i = 2; i > 0; --i)
    std::swap(order[i], order[static_cast<std::size_t>(draw_int(0, static_cast<int>(i)))]);
  return order;
}

inline Axes shuffled(const Axes& axes) {
  Axes result;
  for (Axis a : draw_order())
    if (axes.has(a)) result = result.with(a);
  return result;
}

/// Every axis in one of `bins` lists, in random order; bin 0 is what is left unused.
inline std::vector<Axes> draw_bins(int bins) {
  std::vector<Axes> result(static_cast<std::size_t>(bins));
  for (Axis a : draw_order()) {
    Axes& bin = result[static_cast<std::size_t>(draw_int(0, bins - 1))];
    bin = bin.with(a);
  }
  return result;
}

/// A layout of these dims; partial over some axes only if `partial`.
inline Layout draw_layout(const std::string& letters, bool partial = false) {
  const std::vector<Axes> bins = draw_bins(static_cast<int>(letters.size()) + (partial ? 2 : 1));
  std::vector<Layout::Dim> dims;
  for (std::size_t i = 0; i < letters.size(); ++i) dims.push_back({letters[i], bins[i + 1]});
  return Layout(dims, partial ? bins.back() : Axes());
}

/// A minor-most suffix of at least one axis; `axes` is not empty.
inline Axes draw_suffix(const Axes& axes) {
  const int keep = draw_int(0, axes.size() - 1);
  Axes suffix;
  for (const Axis* a = axes.begin() + keep; a != axes.end(); ++a) suffix = suffix.with(*a);
  return suffix;
}

/// A shape that every layout of `rank` dims divides on this torus, if `roomy` dims carry any axes.
inline Shape draw_shape(const Torus& torus, std::size_t rank) {
  Shape shape;
  for (std::size_t i = 0; i < rank; ++i) shape.push_back(torus.chips() * draw_int(1, 2));
  return shape;
}

}  // namespace shardproof
