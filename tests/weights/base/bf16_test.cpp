#include "weights/base/bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shardproof {
namespace {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// The nearer of the two neighbouring bf16 values, the one with an even code on a tie; in f64, where
// their distances are exact. Above the largest bf16 the next neighbour is 2^128.
double nearest_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
  const auto widen = [](std::uint32_t upper) {
    return upper == 0x7f80U ? 0x1p128 : static_cast<double>(from_bits(upper << 16));
  };
  const std::uint32_t below = bits >> 16;
  const double magnitude = static_cast<double>(from_bits(bits));
  const double down = magnitude - widen(below);
  if (down == 0.0) return widen(below);
  const double up = widen(below + 1) - magnitude;
  if (down != up) return widen(down < up ? below : below + 1);
  return widen(below % 2 == 0 ? below : below + 1);
}

TEST(Bf16, RoundsEveryUpperHalfToNearestEven) {
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper) {
    for (std::uint32_t lower : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const float value = from_bits((upper << 16) | lower);
      const float rounded = round_to_bf16(value);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(rounded)) << std::hex << upper << ' ' << lower;
        continue;
      }
      ASSERT_EQ(std::signbit(rounded), std::signbit(value)) << std::hex << upper << ' ' << lower;
      if (std::isinf(value)) {
        ASSERT_EQ(rounded, value);
        continue;
      }
      const double expected = nearest_bf16(value);
      const double got = std::abs(static_cast<double>(rounded));
      ASSERT_EQ(got, expected == 0x1p128 ? std::numeric_limits<double>::infinity() : expected)
          << std::hex << upper << ' ' << lower;
    }
  }
}

TEST(Bf16, RoundsUnderACondition) {
  // The shape that g++ 12 compiles to nothing where the guard is missing.
  float values[4] = {0x1.234566p0F, 0x1.234566p0F, 0x1.234566p0F, 0x1.234566p0F};
  for (int i = 0; i < 4; ++i) {
    if (i == 3) values[i] = round_to_bf16(values[i]);
  }
  EXPECT_EQ(values[2], 0x1.234566p0F);
  EXPECT_EQ(values[3], 0x1.24p0F);
}

}  // namespace
}  // namespace shardproof
