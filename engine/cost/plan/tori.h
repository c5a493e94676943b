#pragma once

#include <cstdint>
#include <vector>

#include "engine/layout/torus.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// Returns every X×Y×Z of `chips` chips, X slowest. Throws Error("torus_c2", ...) if chips is above
/// Torus::kMaxChips, "torus_c1" if it is below 1.
std::vector<Torus> all_tori(int chips);

/// Returns the tori that a slice of a pod may have (paper section 4): every axis is a multiple of
/// `min_axis`, the smallest axis that wraps round. A slice too small for that has axes that divide
/// `min_axis` and whose sum is minimal: on TPU v4, with axes of 4, 8 chips are 2x2x2 and 16 are
/// 2x2x4 in any order. Empty if no slice has so many chips.
std::vector<Torus> slice_tori(int chips, std::int64_t min_axis);

/// Returns the numbers of chips, at most `most`, that slices may have, in order.
std::vector<int> slice_sizes(std::int64_t min_axis, int most);

}  // namespace shardproof::cost
