#include "tools/bench/statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace shardproof::bench {
namespace {

TEST(Median, IsTheMiddleOne) {
  EXPECT_EQ(median({7.0}), 7.0);
  EXPECT_EQ(median({3.0, 9.0, 1.0}), 3.0);
  EXPECT_EQ(median({3.0, 9.0, 1.0, 4.0}), 3.5);
}

TEST(Spread, IsOfTheIntervalThatHoldsTheMedian) {
  // Of 5 all lie on one side of the true median with a probability of 2/32, of 4 with one of 2/16.
  EXPECT_TRUE(std::isinf(spread({1.0, 1.0, 1.0, 1.0})));
  EXPECT_DOUBLE_EQ(spread({5.0, 4.0, 3.0, 2.0, 1.0}), 4.0 / 3.0);
  // Of 8 at most one does with a probability of 18/256, at most two with one of 74/256.
  EXPECT_DOUBLE_EQ(spread({1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 100.0}), 5.0 / 4.5);
}

/// The interval does hold the true median, that of the uniform numbers, in nine of ten cases.
RC_GTEST_PROP(Spread, HoldsTheTrueMedianMostly, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const auto n = std::size_t{5} + random() % 30;
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values(n);
    for (double& value : values) value = std::uniform_real_distribution<>(1.0, 3.0)(random);
    std::sort(values.begin(), values.end());
    const double width = spread(values) * median(values);
    for (std::size_t k = 0; 2 * k < n; ++k)
      if (std::abs(values[n - 1 - k] - values[k] - width) < 1e-12) {
        held += values[k] <= 2.0 && 2.0 <= values[n - 1 - k] ? 1 : 0;
        break;
      }
  }
  RC_ASSERT(held >= kTrials * 87 / 100);
}

RC_GTEST_PROP(Spread, OfEqualValuesIsNone, ()) {
  const auto n = *rc::gen::inRange<std::size_t>(5, 40);
  RC_ASSERT(spread(std::vector<double>(n, 2.5)) == 0.0);
}

}  // namespace
}  // namespace shardproof::bench
