#pragma once

#include <cstdint>
#include <vector>

#include "weights/base/tensor.h"

namespace shardproof::dump {

/// Returns, for each dim, the indices at which a value is wrong, if it is wrong at all combinations
/// of them and nowhere else, as when whole heads, columns or cache slots are wrong. Empty
/// otherwise, and if one element or all are wrong. Padding counts neither as wrong nor as right.
std::vector<std::vector<std::int64_t>> wrong_box(const Shape& shape, const std::vector<bool>& wrong,
                                                 const std::vector<bool>& padding = {});

}  // namespace shardproof::dump
