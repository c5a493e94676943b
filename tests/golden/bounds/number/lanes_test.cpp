// Numbers side by side: every operation gives, in every lane, what it gives of that number alone.
#include "golden/bounds/number/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "golden/bounds/number/detail/short_format.h"

namespace shardproof::bounds {
namespace {

constexpr std::array kFormats{NumberFormat::bf16, NumberFormat::f16, NumberFormat::f32,
                              NumberFormat::f64};

/// Numbers of every kind: exact, with radii, zero, subnormal, beside the formats' ends, infinite,
/// NaN, unknown.
std::vector<Number> every_kind() {
  std::vector<Number> all;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mantissa(-2.0, 2.0);
  for (const int exponent : {0, 1, -8, 14, 15, 16, -14, -15, -24, -26, 127, 128, -126, -130, -149})
    for (int i = 0; i < 20; ++i) {
      const double center = std::ldexp(mantissa(random), exponent);
      const double radius = std::ldexp(std::abs(mantissa(random)), exponent - 3 * (i % 6));
      all.push_back({center, 0.0, 0.0});
      all.push_back({center, radius, radius / 4});
      all.push_back({center, radius, 0.0});
    }
  for (const double center :
       {0.0, -0.0, kInfinity, -kInfinity, std::nan(""), 65519.9, 65520.0, -65520.0, 0x1.ffp127,
        0x1.fefffp127, 1 + 0x1p-8, 1 + 3 * 0x1p-8, 1 + 0x1p-8 + 0x1p-26, 1 + 0x1p-8 - 0x1p-26})
    for (const double radius : {0.0, 0x1p-30, 1.0, kInfinity})
      all.push_back({center, radius, radius});
  return all;
}

bool alike(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void expect_alike(const Number& lane, const Number& alone, const Number& of) {
  EXPECT_TRUE(alike(lane.center, alone.center) && alike(lane.worst, alone.worst) &&
              alike(lane.likely, alone.likely))
      << of.center << " ± " << of.worst << ", " << of.likely << ": " << lane.center << " ± "
      << lane.worst << ", " << lane.likely << " in a lane, " << alone.center << " ± " << alone.worst
      << ", " << alone.likely << " alone";
}

/// Calls see(lanes, numbers) with each number in every lane, beside ordinary and special ones.
template <class See>
void in_every_lane(See&& see) {
  const std::vector<Number> all = every_kind();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const std::size_t step : {std::size_t{0}, std::size_t{1}, std::size_t{37}}) {
      std::array<Number, kLanes> numbers;
      Lanes lanes;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        numbers[lane] = all[(i + step * lane) % all.size()];
        lanes.set(lane, numbers[lane]);
      }
      see(lanes, numbers);
    }
}

TEST(Lanes, AreStoredAsEachAlone) {
  for (const NumberFormat format : kFormats)
    in_every_lane([&](const Lanes& lanes, const std::array<Number, kLanes>& numbers) {
      const Lanes y = stored(lanes, format);
      for (std::size_t i = 0; i < kLanes; ++i)
        expect_alike(y.number(i), stored(numbers[i], format), numbers[i]);
    });
}

TEST(Lanes, AreAddedAsEachAlone) {
  DeclaredArithmetic narrow;
  narrow.operations = Arithmetic::of(NumberFormat::bf16, 4);
  for (const DeclaredArithmetic& declared : {DeclaredArithmetic(), narrow}) {
    const Operations by(declared);
    in_every_lane([&](const Lanes& a, const std::array<Number, kLanes>& numbers) {
      Lanes b;
      for (std::size_t i = 0; i < kLanes; ++i) b.set(i, numbers[(i + 3) % kLanes]);
      const Lanes y = plus(by, a, b);
      for (std::size_t i = 0; i < kLanes; ++i)
        expect_alike(y.number(i), by.plus(numbers[i], numbers[(i + 3) % kLanes]), numbers[i]);
    });
  }
}

// Its intervals hold those of each number, and end where one of them ends.
TEST(LaneHull, IsThatOfEachAlone) {
  in_every_lane([&](const Lanes& a, const std::array<Number, kLanes>& numbers) {
    Lanes b;
    for (std::size_t i = 0; i < kLanes; ++i) b.set(i, numbers[(i + 1) % kLanes]);
    LaneHull both;
    both.include(a);
    both.include(b);
    const Lanes y = both.lanes();
    for (std::size_t i = 0; i < kLanes; ++i) {
      const Number& other = numbers[(i + 1) % kLanes];
      const Number alone = hull(numbers[i], other);
      if (std::isinf(alone.worst)) {
        EXPECT_EQ(y.worst[i], kInfinity);
        EXPECT_EQ(y.likely[i], kInfinity);
      } else {
        expect_alike(y.number(i), alone, numbers[i]);
      }
    }
  });
}

TEST(LaneHull, OfNothingIsUnknown) {
  const Lanes y = LaneHull().lanes();
  for (const double radius : y.worst) EXPECT_EQ(radius, kInfinity);
}

// It then holds what the sums are, and what each may be rounded to.
TEST(LaneHull, HoldsWhatItsNumbersAreStoredAs) {
  for (const NumberFormat format : kFormats)
    in_every_lane([&](const Lanes& a, const std::array<Number, kLanes>& numbers) {
      LaneHull of_both;
      of_both.include(a);
      of_both.include_stored(format);
      const Lanes y = of_both.lanes();
      for (std::size_t i = 0; i < kLanes; ++i) {
        const auto ends = [&](const Interval& of) {
          const Interval rounded = values(of, format);
          return Interval{std::min(of.low, rounded.low), std::max(of.high, rounded.high)};
        };
        const Interval worst = ends(numbers[i].interval());
        const Interval likely = ends(numbers[i].likely_interval());
        if (worst.low == worst.high) {
          EXPECT_EQ(y.center[i], worst.low);
          EXPECT_EQ(y.worst[i], 0.0);
        } else if (std::isinf(worst.low) || std::isinf(worst.high)) {
          EXPECT_EQ(y.worst[i], kInfinity);
        } else {
          // Of the middle and of the distance of an end from it each is rounded once.
          const double room = 0x1p-51 * std::max(std::abs(worst.low), std::abs(worst.high));
          EXPECT_NEAR(y.center[i] - y.worst[i], worst.low, room);
          EXPECT_NEAR(y.center[i] + y.worst[i], worst.high, room);
          EXPECT_NEAR(y.likely[i], std::max(likely.high - y.center[i], y.center[i] - likely.low),
                      room);
        }
      }
    });
}

// Rounding by bits is the processor's rounding: of f32 by conversion, ties and subnormal included.
TEST(ShortFormats, RoundAsAConversionDoes) {
  std::vector<double> numbers;
  for (const Number& v : every_kind()) numbers.push_back(v.center);
  for (const int exponent : {-149, -140, -127, -126, -125, 0, 1, 126, 127})
    for (const double unit : {0x1p-23, 0x1p-10, 0x1p-2, 0x1p-1})
      for (int half = 0; half < 8; ++half)
        for (const double beside : {-0x1p-40, 0.0, 0x1p-40})
          for (const double sign : {-1.0, 1.0})
            numbers.push_back(sign * std::ldexp(1 + 0.5 * half * unit + beside, exponent));
  for (const double v : numbers) {
    const double by_bits = to_short(v, kShortF32);
    const auto converted = static_cast<double>(static_cast<float>(v));
    EXPECT_TRUE(alike(by_bits, converted)) << v;
    EXPECT_EQ(std::signbit(by_bits), std::signbit(converted)) << v;
  }
}

}  // namespace
}  // namespace shardproof::bounds
