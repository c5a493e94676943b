// What elements of each encoding are worth.
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "golden/trace/read/dump.h"
#include "tests/golden/trace/read/stored_elements.h"

namespace shardproof::dump {
namespace {

double f16(std::uint16_t bits) { return stored<std::uint16_t>(NumberFormat::f16, {bits}).at(0); }
double bf16(std::uint16_t bits) { return stored<std::uint16_t>(NumberFormat::bf16, {bits}).at(0); }
double int64(std::int64_t value) {
  return stored<std::int64_t>(NumberFormat::int64, {value}).at(0);
}

TEST(StoredArray, KnowsItsSize) {
  EXPECT_EQ(stored<double>(NumberFormat::f64, {1.0, 2.0}).size(), 2U);
  EXPECT_EQ(stored<std::int8_t>(NumberFormat::int8, {1, 2, 3}).size(), 3U);
  EXPECT_EQ(StoredArray().size(), 0U);
  EXPECT_EQ(to_string(NumberFormat::bf16), "bf16");
  EXPECT_EQ(to_string(NumberFormat::int64), "int64");
}

RC_GTEST_PROP(StoredArray, WideNumbersAreThemselves, ()) {
  const auto d = *rc::gen::arbitrary<double>();
  const auto f = *rc::gen::arbitrary<float>();
  const auto i = *rc::gen::arbitrary<std::int32_t>();
  const auto c = *rc::gen::arbitrary<std::int8_t>();
  RC_ASSERT(stored<double>(NumberFormat::f64, {0.0, d}).at(1) == d);
  RC_ASSERT(stored<float>(NumberFormat::f32, {0.0F, f}).at(1) == static_cast<double>(f));
  RC_ASSERT(stored<std::int32_t>(NumberFormat::int32, {0, i}).at(1) == i);
  RC_ASSERT(stored<std::int8_t>(NumberFormat::int8, {0, c}).at(1) == c);
}

TEST(StoredArray, HalvesByEye) {
  EXPECT_EQ(f16(0x3C00), 1.0);
  EXPECT_EQ(f16(0xC000), -2.0);
  EXPECT_EQ(f16(0x7BFF), 65504.0);
  EXPECT_EQ(f16(0x0001), 0x1p-24);
  EXPECT_EQ(f16(0x83FF), -0x3FFp-24);
  EXPECT_EQ(f16(0x0400), 0x1p-14);
  EXPECT_EQ(f16(0x7C00), std::numeric_limits<double>::infinity());
  EXPECT_EQ(f16(0xFC00), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(f16(0x7C01)));
  EXPECT_TRUE(std::isnan(f16(0xFE00)));
  EXPECT_TRUE(std::signbit(f16(0x8000)));
}

// All finite f16 in order are evenly spaced within a power of two, and -x is x with the sign bit.
TEST(StoredArray, HalvesAreOrdered) {
  for (unsigned bits = 0; bits < 0x7C00; ++bits) {
    const double here = f16(static_cast<std::uint16_t>(bits));
    EXPECT_EQ(f16(static_cast<std::uint16_t>(bits | 0x8000U)), -here);
    if (bits == 0) continue;
    const double step = here - f16(static_cast<std::uint16_t>(bits - 1));
    const int exponent = std::max(-14, std::ilogb(f16(static_cast<std::uint16_t>(bits - 1))));
    EXPECT_EQ(step, std::ldexp(1.0, (bits == 1 ? -14 : exponent) - 10)) << bits;
  }
}

TEST(StoredArray, Bf16IsTheUpperHalfOfAFloat) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float right = std::bit_cast<float>(bits << 16);
    const double here = bf16(static_cast<std::uint16_t>(bits));
    if (std::isnan(right))
      EXPECT_TRUE(std::isnan(here));
    else
      EXPECT_EQ(here, static_cast<double>(right));
  }
}

TEST(StoredArray, AnInt64ThatADoubleLacksIsNoNumber) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  EXPECT_EQ(int64(kExact), 0x1p53);
  EXPECT_EQ(int64(-kExact), -0x1p53);
  EXPECT_EQ(int64(-5), -5.0);
  EXPECT_TRUE(std::isnan(int64(kExact + 1)));
  EXPECT_TRUE(std::isnan(int64(-kExact - 1)));
  EXPECT_TRUE(std::isnan(int64(std::numeric_limits<std::int64_t>::min())));
}

}  // namespace
}  // namespace shardproof::dump
