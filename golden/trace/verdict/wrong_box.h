#pragma once

#include <cstdint>
#include <vector>

#include "weights/base/tensor.h"

namespace shardproof::candidate {

/// Of each dim of a value the indices at which it is wrong, where it is wrong at all combinations
/// of them and nowhere else, as if whole heads, columns or slots of a cache are. Empty where it is
/// not so, where one element is wrong, and where all are. Padding, where there is any, counts
/// neither as wrong nor as right.
std::vector<std::vector<std::int64_t>> wrong_box(const Shape& shape, const std::vector<bool>& wrong,
                                                 const std::vector<bool>& padding = {});

}  // namespace shardproof::candidate
