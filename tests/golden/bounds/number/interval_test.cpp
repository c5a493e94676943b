// What a number of an interval may be rounded to, and what is no such value.
#include "golden/bounds/number/interval.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "golden/bounds/number/tightness.h"
#include "weights/base/bf16.h"

namespace shardproof::bounds {
namespace {

bool inside(const Interval& of, NumberFormat format, double value) {
  return holds(values(of, format), format, value);
}

TEST(Values, OfBf16AreThoseOfOneRoundingOrTwo) {
  // A tie of bf16 to which a little is added: rounded to f32 first it is a tie again.
  const double x = 1.0 + 0x1p-8 + 0x1p-40;
  const Interval ends = values({x, x}, NumberFormat::bf16);
  EXPECT_EQ(ends.low, 1.0);
  EXPECT_EQ(ends.high, 1.0 + 0x1p-7);
  const Interval clear = values({1.1, 1.1}, NumberFormat::bf16);
  EXPECT_EQ(clear.low, clear.high);
  EXPECT_EQ(clear.low, static_cast<double>(round_to_bf16(1.1F)));
}

TEST(Values, HoldTheRoundingsOfTheEnds) {
  // Two conversions side by side, which g++ 12 may drop.
  const Interval ends = values({1.0 + 0x1p-30, 2.0 - 0x1p-30}, NumberFormat::f32);
  EXPECT_EQ(ends.low, 1.0);
  EXPECT_EQ(ends.high, 2.0);
}

/// All finite numbers of a format that are not negative, in order.
std::vector<double> numbers_of(NumberFormat format) {
  const bool bf16 = format == NumberFormat::bf16;
  const unsigned digits = bf16 ? 7 : 10, infinity = bf16 ? 0x7f80U : 0x7c00U;
  const int least = bf16 ? -133 : -24;
  std::vector<double> numbers;
  for (unsigned bits = 0; bits < infinity; ++bits) {
    const unsigned exponent = bits >> digits, fraction = bits & ((1U << digits) - 1);
    numbers.push_back(exponent == 0 ? std::ldexp(fraction, least)
                                    : std::ldexp(fraction | 1U << digits,
                                                 least + static_cast<int>(exponent) - 1));
  }
  return numbers;
}

// Ties, and what is beside them, between all neighbours of both formats, with both signs.
TEST(Nearest, OfEachNeighbourhoodOfAShortFormat) {
  for (const NumberFormat format : {NumberFormat::bf16, NumberFormat::f16}) {
    const std::vector<double> numbers = numbers_of(format);
    for (const double sign : {1.0, -1.0}) {
      const auto expect = [&](double from, double to) {
        const double found = nearest(sign * from, format);
        ASSERT_EQ(std::bit_cast<std::uint64_t>(found), std::bit_cast<std::uint64_t>(sign * to))
            << from << " became " << found;
      };
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const double low = numbers[i];
        const bool last = i + 1 == numbers.size();
        const double high = last ? kInfinity : numbers[i + 1];
        const double tie = last ? low + (low - numbers[i - 1]) / 2 : low + (high - low) / 2;
        expect(low, low);
        expect(std::nextafter(low, kInfinity), low);
        expect(std::nextafter(tie, 0.0), low);
        expect(tie, i % 2 == 0 ? low : high);
        expect(std::nextafter(tie, kInfinity), high);
      }
      expect(0x1p-1074, 0.0);
      expect(1e300, kInfinity);
      expect(kInfinity, kInfinity);
    }
    EXPECT_TRUE(std::isnan(nearest(NAN, format)));
  }
}

TEST(Values, NaNIsOnlyWhereNothingIsKnown) {
  EXPECT_FALSE(inside({-1.0, INFINITY}, NumberFormat::f32, NAN));
  EXPECT_FALSE(inside(around(0.0, 1.0), NumberFormat::f32, INFINITY));
  for (const Interval& nothing : {around(NAN, 1.0), around(0.0, NAN), around(INFINITY, 1.0),
                                  around(NAN, 0.0), around(0.0, INFINITY), Interval{NAN, 1.0}}) {
    EXPECT_TRUE(inside(nothing, NumberFormat::f32, NAN));
    EXPECT_TRUE(inside(nothing, NumberFormat::f32, 1.0));
    const Interval ends = values(nothing, NumberFormat::f32);
    EXPECT_FALSE(narrow(0.5 * (ends.high - ends.low), 1.0));
  }
}

// What overflowed in somebody's f16 is a number like another, and nothing else is it.
TEST(Values, AnInfinityThatIsKnownIsThatOne) {
  for (const double infinity : {HUGE_VAL, -HUGE_VAL}) {
    EXPECT_TRUE(inside(around(infinity, 0.0), NumberFormat::f16, infinity));
    for (const double other : {-infinity, 65504.0, 0.0, std::nan("")})
      EXPECT_FALSE(inside(around(infinity, 0.0), NumberFormat::f16, other));
    EXPECT_EQ(distance(infinity, NumberFormat::f16, infinity), 0.0);
    EXPECT_EQ(distance(infinity, NumberFormat::f16, -infinity), kInfinity);
  }
  EXPECT_EQ(distance(HUGE_VAL, NumberFormat::f16, 70000.0), 0.0);
  EXPECT_EQ(distance(65504.0, NumberFormat::f16, 70000.0),
            70000.0 - 65504.0 - 0x1p-11 * 65504 - 0x1p-25);
}

TEST(Values, AreOfTheFormat) {
  EXPECT_TRUE(inside({1.0, 1.5}, NumberFormat::bf16, 1.0 + 0x1p-7));
  EXPECT_FALSE(inside({1.0, 1.5}, NumberFormat::bf16, 1.0 + 0x1p-8));
  EXPECT_TRUE(inside({1.0, 1.5}, NumberFormat::f32, 1.0 + 0x1p-23));
  EXPECT_FALSE(inside({1.0, 1.5}, NumberFormat::f32, 1.0 + 0x1p-24));
  EXPECT_TRUE(inside({1.0, 1.5}, NumberFormat::f64, 1.0 + 0x1p-24));
  EXPECT_FALSE(inside({-1.0, 1.0}, NumberFormat::bf16, 0x1p-134));
}

}  // namespace
}  // namespace shardproof::bounds
