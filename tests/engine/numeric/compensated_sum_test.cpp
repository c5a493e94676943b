// The second stage between the rounding test and the exact sum: it decides nearly everything, never
// wrongly, and leaves to the exact sum what its bound cannot tell. Sums are held against ExactSum,
// which exact_arithmetic_test.cpp holds against MPFR.
#include "engine/numeric/detail/compensated_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "tests/bits.h"
#include "tests/engine/hostile_terms.h"

namespace shardproof {
namespace {

using Kind = HostileTerms::Kind;

std::optional<float> compensated(const DotTerms& t) {
  CompensatedSum sum;
  for (std::size_t k = 0; k < t.x.size(); ++k) sum.add_product(t.x[k], t.y[k]);
  return sum.rounded();
}

float exact(const DotTerms& t) {
  ExactSum sum;
  for (std::size_t k = 0; k < t.x.size(); ++k) sum.add_product(t.x[k], t.y[k]);
  return sum.rounded();
}

float settled_terms(const DotTerms& t) {
  return settled([&](auto& sum) {
    for (std::size_t k = 0; k < t.x.size(); ++k) sum.add_product(t.x[k], t.y[k]);
  });
}

class CompensatedSums : public ::testing::TestWithParam<Kind> {};

TEST_P(CompensatedSums, DecideNeverWronglyAndNearlyAlways) {
  constexpr int kTrials = 3000;
  HostileTerms draw(22);
  int decided = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const DotTerms t = draw.draw(GetParam(), draw.within(1, 150));
    const std::uint32_t expected = bits(exact(t));
    ASSERT_EQ(bits(settled_terms(t)), expected) << "trial " << trial;
    if (const auto sum = compensated(t)) {
      ASSERT_EQ(bits(*sum), expected) << "trial " << trial;
      ++decided;
    }
  }
  RecordProperty("decided", decided);
  // It may leave what cancels to nothing or to a last speck, and ties: no bound but zero does
  // there.
  const bool hard = GetParam() == Kind::cancelling || GetParam() == Kind::ties;
  EXPECT_GT(decided, hard ? 0 : kTrials * 9 / 10);
  if (GetParam() == Kind::ties) {
    EXPECT_LT(decided, kTrials) << "no tie was too hard: nothing was left to the exact sum";
  }
}

INSTANTIATE_TEST_SUITE_P(, CompensatedSums, ::testing::ValuesIn(HostileTerms::kKinds),
                         [](const auto& given) { return HostileTerms::name(given.param); });

/// m + half an ulp of f32 + `of_f64` halves of an ulp of f64 + speck, by terms that an f64 sum
/// loses.
DotTerms near_tie(float m, float of_f64, float speck) {
  DotTerms t;
  t.add(m, 1);
  t.add(1, 0x1p-24F);
  t.add(of_f64, 0x1p-53F);
  t.add(speck, 0x1p-70F);
  return t;
}

/// RN64 goes to the tie of f32, or to its neighbour, as a speck beyond 2^-106 will have it.
TEST(CompensatedSum, LeavesATieThatASpeckDecidesToTheExactSum) {
  const float even = 1, odd = 1 + 0x1p-23F;
  for (const float speck : {0x1p-60F, -0x1p-60F, 0.0F}) {
    // Beside the tie, on the side where the other f32 is: no bound but zero decides it.
    for (const DotTerms& t : {near_tie(even, 1, speck), near_tie(odd, -1, speck)}) {
      EXPECT_EQ(compensated(t), std::nullopt) << speck;
      EXPECT_EQ(settled_terms(t), exact(t)) << speck;
    }
    // On the other side the tie and its neighbour are one f32.
    for (const DotTerms& t : {near_tie(even, -1, speck), near_tie(odd, 1, speck)})
      EXPECT_EQ(compensated(t), exact(t)) << speck;
  }
  // Above and below: the exact sum tells them apart.
  EXPECT_EQ(exact(near_tie(even, 1, 0x1p-60F)), odd);
  EXPECT_EQ(exact(near_tie(even, 1, -0x1p-60F)), even);
}

TEST(CompensatedSum, DecidesWhatPlainSumsWithBoundsDoNot) {
  // A speck of 2^-73 of the sum, on either side of the f64 half next to a tie of f32.
  for (const float speck : {1.0F, -1.0F}) {
    const DotTerms t = near_tie(1, 1, speck * 0x1p-20F * 0x1p17F);
    double plain = 0;
    for (std::size_t k = 0; k < t.x.size(); ++k)
      plain += static_cast<double>(t.x[k]) * static_cast<double>(t.y[k]);
    EXPECT_EQ(decide(plain, sum_bound(4, 1.0)), std::nullopt);
    EXPECT_EQ(compensated(t), exact(t));
  }
}

TEST(CompensatedSum, OfExactAdditionsDecidesTiesAndZeros) {
  DotTerms tie;
  tie.add(1, 1);
  tie.add(1, 0x1p-24F);
  EXPECT_EQ(compensated(tie), 1.0F);
  DotTerms nothing;
  EXPECT_EQ(bits(*compensated(nothing)), 0U);
  nothing.add(-0.0F, 1);
  nothing.add(3, 5);
  nothing.add(-3, 5);
  EXPECT_EQ(bits(*compensated(nothing)), 0U) << "an exact zero is +0";
}

/// Zero, once the lost parts are counted: only the exact sum knows that it is one.
TEST(CompensatedSum, LeavesAZeroThatItsBoundReachesToTheExactSum) {
  DotTerms t;
  for (const float s : {1.0F, -1.0F}) {
    t.add(s, 1);
    t.add(s, 0x1p-60F);
  }
  const auto sum = compensated(t);
  EXPECT_TRUE(!sum || bits(*sum) == 0U);
  EXPECT_EQ(bits(settled_terms(t)), 0U);
}

TEST(CompensatedSum, RoundsSubnormalsAndOverflowOnce) {
  // 2^-149 · 1.5 and a speck below, which decides the tie of the least two subnormals.
  for (const float speck : {0x1p-149F, -0x1p-149F}) {
    DotTerms t;
    t.add(0x1p-75F, 0x1p-74F);
    t.add(0x1p-75F, 0x1p-75F);
    t.add(speck, 0x1p-40F);
    EXPECT_EQ(settled_terms(t), speck > 0 ? 0x1p-148F : 0x1p-149F);
    const auto sum = compensated(t);
    EXPECT_TRUE(!sum || *sum == exact(t));
  }
  DotTerms negative;  // too small for f32, and no zero
  negative.add(-0x1p-100F, 0x1p-60F);
  negative.add(-0x1p-149F, 0x1p-100F);
  EXPECT_EQ(bits(*compensated(negative)), bits(-0.0F));
  DotTerms large;
  const float max = std::numeric_limits<float>::max();
  large.add(max, 1);
  large.add(0x1p80F, 0x1p23F);
  large.add(-0x1p74F, 1);
  large.add(1, -0x1p-60F);
  EXPECT_EQ(settled_terms(large), max) << "just below where RN64 goes to the tie with infinity";
  large.add(1, 0x1p-59F);
  EXPECT_EQ(settled_terms(large), std::numeric_limits<float>::infinity());
}

/// Its bound grows with what was lost, and with how often: terms that add up to an error of the
/// lost parts' own sum, as large as it may be, next to a boundary of f32.
TEST(CompensatedSum, BoundsTheSumOfWhatWasLost) {
  HostileTerms draw(5);
  int undecided = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    DotTerms t;
    const int n = draw.within(1, 400);
    t.add(1, 1);
    t.add(1, 0x1p-24F);            // a tie of f32,
    t.add(draw.sign(), 0x1p-53F);  // the half of f64 beside it,
    // and parts that each fall just short of half an ulp of the sum of lost parts: all of one sign.
    const float s = draw.sign();
    const float part = std::ldexp(draw.within(0, 1) == 0 ? 1.0F : 0x1.fffffep-1F, -53);
    for (int k = 0; k < n; ++k) t.add(s * part, 0x1p-53F);
    // Taken back but for the last, so that the sum's true place is within the lost parts' error.
    if (draw.coin()) t.add(-s * part * static_cast<float>(n - 1), 0x1p-53F);
    const float expected = exact(t);
    ASSERT_EQ(bits(settled_terms(t)), bits(expected)) << "trial " << trial;
    undecided += compensated(t) ? 0 : 1;
  }
  EXPECT_GT(undecided, 0);
}

}  // namespace
}  // namespace shardproof
