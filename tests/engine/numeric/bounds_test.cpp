// The bounds of sums, what they let be decided, and the exact sum where they do not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "engine/numeric/contract.h"
#include "engine/numeric/detail/rounding_test.h"
#include "engine/numeric/exact_sum.h"
#include "tests/bits.h"
#include "tests/engine/hostile_terms.h"

namespace shardproof {
namespace {

TEST(Bounds, AreKeptAsAnF32ThatIsNotBelow) {
  HostileTerms draw(7);
  int cast_below = 0;
  for (int trial = 0; trial < 10000; ++trial) {
    const double significand = 1.0 + draw.within(0, 1 << 30) * 0x1p-30;
    const double bound = std::ldexp(significand, draw.within(-340, 240));
    const auto stored = static_cast<double>(stored_bound(bound));
    ASSERT_GE(stored, bound);
    if (bound >= 0x1p-126 && bound < 0x1p127) {
      ASSERT_LE(stored, bound * (1 + 0x1p-21));
    }
    cast_below += static_cast<double>(static_cast<float>(bound)) < bound ? 1 : 0;
  }
  EXPECT_GT(cast_below, 1000) << "a plain cast would have been seen";
  EXPECT_EQ(stored_bound(0.0), 0.0F);
  EXPECT_EQ(decide(1.0, static_cast<double>(stored_bound(0x1p200))), std::nullopt);
}

TEST(Bounds, OfTinyFactorsAreNotZero) {
  // 1 - 2^-60 by two exact products, times 2^-140: no f64 sum has it, and a bound cast to f32 would
  // be zero, which means exact.
  const float a[] = {0x1p-70F, -0x1p-100F}, b[] = {0x1p-70F, 0x1p-100F};
  const Products c = contract(1, 1, {{.a = a, .b = b, .K = 2}});
  ASSERT_EQ(c.bounds.size(), 1U);
  EXPECT_GE(c.bounds[0], 0x1p-126F);
  const float zeros[] = {0, 0}, inexact[] = {1, 0x1p-60F};
  const float rows[] = {0, 0, 1, 1};
  const Products rest =
      contract(2, 1, {{.a = rows, .b = inexact, .K = 2}, {.a = rows, .b = zeros, .K = 2}});
  ASSERT_EQ(rest.bounds.size(), 2U);
  EXPECT_EQ(rest.bounds[0], 0.0F) << "a row of zeros is exact";
  EXPECT_GT(rest.bounds[1], 0.0F);
}

TEST(Bounds, HoldWhereEveryAdditionErrsTheSameWay) {
  // 1 and then half an ulp of f64 again and again: each is lost, so the error grows with the
  // length.
  std::vector<float> a(200, 0x1p-27F), b(200, 0x1p-26F);
  a[0] = b[0] = 1;
  const Products c = contract(1, 1, {{.a = a.data(), .b = b.data(), .K = 200}});
  EXPECT_EQ(c.values[0], 1);
  EXPECT_GE(c.bounds.at(0), 199 * 0x1p-53F);
  EXPECT_LT(c.bounds.at(0), 210 * 0x1p-53F) << "a bound far from the error would decide nothing";
}

/// The same additions cut into terms, each of which loses its part: the first holds the 1.
TEST(Bounds, OfSeveralTermsCountThemAll) {
  const std::vector<float> a(300, 0x1p-27F), b(300, 0x1p-26F);
  const float one = 1;
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{100, 100}, {1, 299}, {299, 1}, {20, 100, 3}, {5, 5, 5, 5, 200}}) {
    std::vector<Term> terms{{.a = &one, .b = &one, .K = 1}};
    std::int64_t lost = 0;
    for (const std::int64_t K : lengths) {
      terms.push_back({.a = a.data(), .b = b.data(), .K = K});
      lost += K;
    }
    const Products c = contract(1, 1, terms);
    EXPECT_EQ(c.values[0], 1);
    const double error = static_cast<double>(lost) * 0x1p-53;
    EXPECT_GE(static_cast<double>(c.bounds.at(0)), error) << lengths.size();
    EXPECT_LT(static_cast<double>(c.bounds.at(0)), 1.1 * error + 0x1p-50) << lengths.size();
  }
  // The 1 in the last term, and terms that are alike: a bound of one term alone is half of it.
  std::vector<float> first(200, 0x1p-27F), second(200, 0x1p-26F);
  first[0] = second[0] = 1;
  const Term both{.a = first.data(), .b = second.data(), .K = 200};
  const Products twice = contract(1, 1, {both, both});
  const Products once = contract(1, 1, {both});
  EXPECT_GE(twice.bounds.at(0), 2 * once.bounds.at(0));
}

TEST(RoundingTest, DecidesOnlyWhatTheBoundAllows) {
  EXPECT_EQ(decide(1.0, 0.0), 1.0F);
  EXPECT_EQ(decide(1.0, 0x1p-30), 1.0F);
  EXPECT_EQ(decide(1.0, 0x1p-20), std::nullopt);
  EXPECT_EQ(decide(1.0 + 0x1p-24, 0.0), 1.0F);      // an exact tie, to even
  EXPECT_EQ(decide(1.0 + 0x1p-24, 0x1p-60), 1.0F);  // RN64 of either end is the tie
  EXPECT_EQ(decide(1.0 + 0x1p-24, 0x1p-50), std::nullopt);
  EXPECT_EQ(decide(0.0, 0x1p-300), std::nullopt);  // +0 or -0
  EXPECT_EQ(bits(*decide(-0.0, 0.0)), 0U);
  EXPECT_EQ(decide(0x1p200, 1.0), std::numeric_limits<float>::infinity());
}

TEST(ExactSum, HoldsManyOfTheLargestProductsAndTheLeast) {
  const float max = std::numeric_limits<float>::max();
  ExactSum sum;
  for (int k = 0; k < 100000; ++k) sum.add_product(max, max);
  EXPECT_EQ(sum.rounded(), std::numeric_limits<float>::infinity());
  for (int k = 0; k < 100000; ++k) sum.add_product(-max, max);
  EXPECT_EQ(bits(sum.rounded()), 0U);
  sum.add_product(0x1p-149F, -0x1p-149F);
  EXPECT_EQ(sum.rounded64(), -0x1p-298);
  EXPECT_EQ(bits(sum.rounded()), bits(-0.0F));  // too small for an f32, yet no exact zero
}

}  // namespace
}  // namespace shardproof
