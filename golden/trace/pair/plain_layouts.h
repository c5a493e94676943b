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

}  // namespace shardproof::dump
