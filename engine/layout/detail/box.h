#pragma once

#include <algorithm>
#include <cstdint>

#include "weights/base/tensor.h"

namespace shardproof {

/// Calls run(from_index, to_index, length) for each contiguous run of elements of a box of extents
/// `extent` at `from_offset` in a row-major array of `from_shape` and at `to_offset` in one of
/// `to_shape`.
template <class Run>
void for_each_run(const Shape& extent, const Shape& from_shape, const Shape& from_offset,
                  const Shape& to_shape, const Shape& to_offset, Run&& run) {
  const std::size_t rank = extent.size();
  for (std::int64_t e : extent)
    if (e == 0) return;
  if (rank == 0) {
    run(std::int64_t{0}, std::int64_t{0}, std::int64_t{1});
    return;
  }
  // Trailing dims that are whole on both sides join the contiguous run.
  std::size_t inner = rank - 1;
  std::int64_t length = extent[inner];
  while (inner > 0 && extent[inner] == from_shape[inner] && extent[inner] == to_shape[inner])
    length *= extent[--inner];

  Shape index(rank, 0);
  for (;;) {
    std::int64_t from = 0;
    std::int64_t to = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      from = from * from_shape[d] + from_offset[d] + index[d];
      to = to * to_shape[d] + to_offset[d] + index[d];
    }
    run(from, to, length);
    std::size_t d = inner;
    while (d > 0 && ++index[d - 1] == extent[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace shardproof
