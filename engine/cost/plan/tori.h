#pragma once

#include <cstdint>
#include <vector>

#include "engine/layout/torus.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// Every X×Y×Z of so many chips, X slowest. Throws Error("torus_c2", ...) on more than
/// Torus::kMaxChips, "torus_c1" on fewer than 1.
std::vector<Torus> all_tori(int chips);

/// Those that a slice of a pod has (paper section 4): every axis is a multiple of `min_axis`, the
/// smallest axis that wraps round. A slice of too few chips for that has axes that divide
/// `min_axis` and whose sum is the least: of TPU v4, with axes of 4, 8 chips are 2x2x2 and 16 are
/// 2x2x4 in any order. Empty where no slice has so many chips.
std::vector<Torus> slice_tori(int chips, std::int64_t min_axis);

/// The numbers of chips up to `most` that slices have, in order.
std::vector<int> slice_sizes(std::int64_t min_axis, int most);

}  // namespace shardproof::cost
