#include "weights/base/number_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace shardproof {
namespace {

TEST(NumberFormat, ByEye) {
  EXPECT_EQ(number_of_bits(NumberFormat::bf16, 0x3fc0), 1.5);
  EXPECT_EQ(number_of_bits(NumberFormat::f16, 0x3555), 0.333251953125);
  EXPECT_EQ(number_of_bits(NumberFormat::f16, 0x8001), -std::ldexp(1.0, -24));
  EXPECT_EQ(number_of_bits(NumberFormat::f8_e4m3, 0x7e), 448.0);
  EXPECT_EQ(number_of_bits(NumberFormat::f8_e4m3, 0x01), std::ldexp(1.0, -9));
  EXPECT_EQ(number_of_bits(NumberFormat::f8_e5m2, 0xfb), -57344.0);
  EXPECT_EQ(number_of_bits(NumberFormat::f8_e5m2, 0x01), std::ldexp(1.0, -16));
  EXPECT_EQ(number_of_bits(NumberFormat::int8, 0x80), -128.0);
  EXPECT_EQ(number_of_bits(NumberFormat::int32, 0xfffffffe), -2.0);
  EXPECT_EQ(number_of_bits(NumberFormat::int64, ~std::uint64_t{0}), -1.0);
  EXPECT_TRUE(std::signbit(number_of_bits(NumberFormat::f8_e4m3, 0x80)));
}

TEST(NumberFormat, WhatIsNoNumber) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(number_of_bits(NumberFormat::bf16, 0xff80), -inf);
  EXPECT_EQ(number_of_bits(NumberFormat::f16, 0x7c00), inf);
  EXPECT_EQ(number_of_bits(NumberFormat::f8_e5m2, 0x7c), inf);
  for (const auto& [format, bits] : {std::pair{NumberFormat::f8_e4m3, 0x7fU},
                                     {NumberFormat::f8_e4m3, 0xffU},
                                     {NumberFormat::f8_e5m2, 0x7dU},
                                     {NumberFormat::bf16, 0x7f81U},
                                     {NumberFormat::f16, 0xfe00U},
                                     {NumberFormat::f32, 0x7fc00000U}})
    EXPECT_TRUE(std::isnan(number_of_bits(format, bits))) << row_of(format).word;
}

TEST(NumberFormat, RowsAreInTheirOrder) {
  for (std::size_t i = 0; i < kNumberFormats.size(); ++i)
    EXPECT_EQ(static_cast<std::size_t>(kNumberFormats[i].format), i);
}

// f32 and f64 as the processor has them: every exponent, ends of the fractions.
TEST(NumberFormat, IsTheProcessors) {
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent)
    for (const std::uint32_t fraction : {0U, 1U, 0x400000U, 0x7fffffU, 0x2aaaaaU})
      for (const std::uint32_t sign : {0U, 1U}) {
        const std::uint32_t bits = sign << 31 | exponent << 23 | fraction;
        EXPECT_EQ(number_of_bits(NumberFormat::f32, bits),
                  static_cast<double>(std::bit_cast<float>(bits)));
        EXPECT_EQ(number_of_bits(NumberFormat::bf16, bits >> 16),
                  static_cast<double>(std::bit_cast<float>(bits & 0xffff0000U)));
      }
  for (std::uint64_t exponent = 0; exponent < 2047; ++exponent)
    for (const std::uint64_t fraction :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xfffffffffffff}}) {
      const std::uint64_t bits = exponent << 52 | fraction;
      EXPECT_EQ(number_of_bits(NumberFormat::f64, bits), std::bit_cast<double>(bits));
    }
}

// Of every narrow float: the next bits are the next number, the first is `least`, the last
// `largest`, and one above 1 is two units away.
TEST(NumberFormat, FollowsItsRow) {
  for (const NumberFormatRow& row : kNumberFormats) {
    if (row.exponent_bits == 0 || row.bytes > 2) continue;
    const std::uint64_t end = std::uint64_t{1} << (8 * row.bytes - 1);
    double before = 0.0, last = 0.0, above_one = 0.0;
    for (std::uint64_t bits = 1; bits < end; ++bits) {
      const double number = number_of_bits(row.format, bits);
      if (!std::isfinite(number)) continue;
      ASSERT_LT(before, number) << row.word << ' ' << bits;
      ASSERT_EQ(number_of_bits(row.format, bits | end), -number);
      if (bits == 1) {
        EXPECT_EQ(number, 2.0 * row.least) << row.word;
      }
      if (before == 1.0) above_one = number;
      before = last = number;
    }
    EXPECT_EQ(last, row.largest) << row.word;
    EXPECT_EQ(above_one - 1.0, 2.0 * row.unit) << row.word;
  }
  EXPECT_EQ(row_of(NumberFormat::f32).largest, std::numeric_limits<float>::max());
  EXPECT_EQ(2.0 * row_of(NumberFormat::f32).least, std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(row_of(NumberFormat::f64).largest, std::numeric_limits<double>::max());
  EXPECT_EQ(row_of(NumberFormat::f64).unit, std::numeric_limits<double>::epsilon() / 2);
}

}  // namespace
}  // namespace shardproof
