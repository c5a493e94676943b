#pragma once

#include <bit>
#include <cstdint>

#include "weights/base/error.h"

namespace shardproof::oracle {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

/// Returns 2^n for -1022 <= n <= 1023, as std::ldexp(1.0, n), built from bits.
inline double power_of_two(int n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

/// A finite f32 as an integer times a power of two: |integer| < 2^24, exponent >= -149.
struct Parts {
  std::int64_t integer;
  int exponent;
};

/// Decomposes v. Throws Error("oracle_finite", ...) on an infinity or NaN.
Parts parts_of(float v);

/// Returns (float) RN64(±integer·2^exponent), where `sticky` says that nonzero bits were dropped
/// below the integer's last one. The cast from 64 bits to f64 rounds to nearest even and cannot
/// lose the sticky bit: an integer with dropped bits has its top bit set, so 11 bits lie below the
/// rounding.
float rounded(bool negative, std::uint64_t integer, bool sticky, int exponent);

/// Returns (float) RN64(sum·2^exponent); +0 for zero.
float rounded(Int128 sum, int exponent);

}  // namespace shardproof::oracle
