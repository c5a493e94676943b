#pragma once

#include <cstddef>
#include <vector>

#include "weights/base/tensor.h"

namespace shardproof::dump {

/// Returns, per dim, how many of the tensor's slices have the bits of an earlier one: of slices
/// that a few elements do not tell apart, all elements are compared, by hash.
std::vector<std::size_t> repeats_by_dim(const Tensor& t);

}  // namespace shardproof::dump
