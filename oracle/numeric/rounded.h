#pragma once

#include <bit>
#include <cstdint>

#include "weights/base/error.h"

namespace shardproof::oracle {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

/// 2^n of -1022 <= n <= 1023: what std::ldexp(1.0, n) is, by its bits.
inline double power_of_two(int n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

/// A finite f32 as an integer times a power of two: |integer| < 2^24, exponent >= -149.
struct Parts {
  std::int64_t integer;
  int exponent;
};

/// Throws Error("oracle_finite", ...) of an infinity or NaN.
Parts parts_of(float v);

/// (float) RN64(±integer·2^exponent), where `sticky` says that the integer had more bits, all below
/// its last one. The cast from 64 bits to f64 rounds to nearest even and cannot be off the sticky
/// bit, because an integer with dropped bits has its top bit set: 11 bits lie below the rounding.
float rounded(bool negative, std::uint64_t integer, bool sticky, int exponent);

/// (float) RN64(sum·2^exponent); of zero +0.
float rounded(Int128 sum, int exponent);

}  // namespace shardproof::oracle
