#pragma once

#include <cstdint>

#include "weights/base/tensor.h"

namespace shardproof {

/// Adds the bytes of `count` f32 arrays of a shape to `total`. Returns false if 64 bits cannot
/// count them.
inline bool count_bytes(const Shape& shape, std::int64_t count, std::int64_t& total) {
  auto bytes = static_cast<std::int64_t>(sizeof(float));
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return false;
  return !__builtin_mul_overflow(bytes, count, &bytes) &&
         !__builtin_add_overflow(total, bytes, &total);
}

}  // namespace shardproof
