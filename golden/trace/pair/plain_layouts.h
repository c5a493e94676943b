#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/layout/layout.h"
#include "weights/base/tensor.h"

namespace shardproof::dump {

/// Returns the other layouts under which chips hold blocks of the same shape: the axes of its dims
/// in other orders, or exchanged.
std::vector<Layout> other_layouts(const Layout& layout, const Torus& torus);

/// Distances of the elements that two layouts place differently, by each of both.
struct MovedDistances {
  std::vector<double> declared, other;
};
/// Returns log2 of the chance that as many of the declared layout's distances, or more, exceed all
/// of the other's, if both are drawn alike: if the other is no more right than the declared one.
double chance_of_nearer(const MovedDistances& distances);

}  // namespace shardproof::dump
