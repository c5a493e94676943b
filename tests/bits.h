#pragma once

#include <bit>
#include <cstdint>

namespace shardproof {

/// Returns the number's bits, which tell -0 from +0 and one NaN from another.
inline std::uint32_t bits(float v) { return std::bit_cast<std::uint32_t>(v); }
inline std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }

}  // namespace shardproof
