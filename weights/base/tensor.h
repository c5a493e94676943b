#pragma once

#include <cstdint>
#include <vector>

namespace shardproof {

using Shape = std::vector<std::int64_t>;

/// Returns the product of the extents; 1 for a scalar.
inline std::int64_t element_count(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) n *= extent;
  return n;
}

/// An unsharded row-major array, as weights files hold and the oracle computes.
template <class T>
struct Array {
  Shape shape;
  std::vector<T> data;

  Array() = default;
  explicit Array(Shape s, T fill = T{})
      : shape(std::move(s)), data(static_cast<std::size_t>(element_count(shape)), fill) {}
};

using Tensor = Array<float>;
using IntTensor = Array<std::int32_t>;

}  // namespace shardproof
