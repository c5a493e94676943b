// The bounds of sums: right sums in every order are sum_inside, wrong ones outside, and for short
// sums some right ones reach more than half of the bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

#include "golden/bounds/number/detail/running.h"
#include "golden/bounds/number/tightness.h"
#include "golden/scalar/detail/adding.h"
#include "weights/base/bf16.h"

namespace shardproof::bounds {
namespace {

using Floats = std::vector<float>;
using Random = std::mt19937_64;

double wide(float v) { return static_cast<double>(v); }
bool sum_inside(const Interval& of, NumberFormat format, double value) {
  return holds(values(of, format), format, value);
}

/// Normal, or spread over many sizes.
Floats factors(std::size_t n, Random& random, double spread = 0.0) {
  std::normal_distribution<double> normal;
  Floats v(n);
  for (float& x : v) x = static_cast<float>(normal(random) * std::exp(spread * normal(random)));
  return v;
}

float chain_of(const Floats& a, const Floats& b, bool acc_bf16 = false) {
  float c = 0.0F;
  for (std::size_t k = 0; k < a.size(); ++k) {
    c = std::fma(a[k], b[k], c);
    if (acc_bf16) c = round_to_bf16(c);
  }
  return c;
}
Interval bound_of(const Floats& a, const Floats& b, bool acc_bf16 = false) {
  return chain(
      a.size(), [&](std::size_t k) { return a[k]; }, [&](std::size_t k) { return b[k]; },
      acc_bf16 ? Step::bf16() : Step::f32());
}
NumberFormat format_of(bool acc_bf16) { return acc_bf16 ? NumberFormat::bf16 : NumberFormat::f32; }

TEST(RunningBound, HoldsForTheDeclaredChain) {
  Random random(1);
  for (const bool acc : {false, true})
    for (const std::size_t n : {1U, 2U, 3U, 8U, 96U, 384U, 1000U})
      for (const double spread : {0.0, 3.0, 12.0})
        for (int trial = 0; trial < 50; ++trial) {
          const Floats a = factors(n, random, spread), b = factors(n, random, spread);
          ASSERT_TRUE(sum_inside(bound_of(a, b, acc), format_of(acc), wide(chain_of(a, b, acc))))
              << n << " " << spread << " " << acc;
        }
}

TEST(RunningBound, HoldsForSubnormals) {
  Random random(2);
  for (int trial = 0; trial < 300; ++trial) {
    Floats a = factors(12, random), b = factors(12, random);
    for (float& x : a) x *= 0x1p-74F;
    for (float& x : b) x *= 0x1p-74F;
    ASSERT_TRUE(sum_inside(bound_of(a, b), NumberFormat::f32, wide(chain_of(a, b))));
  }
}

TEST(RunningBound, OfOneProductIsItsRounding) {
  const Interval one = bound_of({1.1F}, {2.3F});
  EXPECT_EQ(one.low, one.high);
  EXPECT_EQ(one.low, wide(1.1F) * wide(2.3F));
}

TEST(RunningBound, FaultsAreOutside) {
  Random random(3);
  int dropped = 0, twice = 0, rounded = 0, scaled = 0;
  constexpr int kTrials = 200;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Floats a = factors(96, random), b = factors(96, random);
    const Interval bound = bound_of(a, b);
    const auto outside = [&](const Floats& x, const Floats& y, float scale = 1.0F) {
      return sum_inside(bound, NumberFormat::f32, wide(chain_of(x, y) * scale)) ? 0 : 1;
    };
    Floats less = a, more_a = a, more_b = b, bf16 = a;
    less[40] = 0.0F;
    more_a.push_back(a[40]), more_b.push_back(b[40]);
    for (float& x : bf16) x = round_to_bf16(x);
    dropped += outside(less, b);
    twice += outside(more_a, more_b);
    rounded += outside(bf16, b);
    scaled += outside(a, b, 1.0F + 0x1p-10F);
  }
  // One element may hide what a tensor shows.
  for (const int found : {dropped, twice, rounded, scaled}) EXPECT_GE(found, kTrials * 95 / 100);
}

/// Of tensors of 512 sums of 1000 terms: the median of the bounds, over the largest error.
TEST(RunningBound, SlackAtAThousandTerms) {
  std::vector<double> slacks;
  Random random(4);
  for (int tensor = 0; tensor < 15; ++tensor) {
    double error = 0.0;
    std::vector<double> radii;
    for (int i = 0; i < 512; ++i) {
      const Floats a = factors(1000, random), b = factors(1000, random);
      const Interval of = bound_of(a, b);
      radii.push_back(0.5 * (of.high - of.low));
      error = std::max(error, std::abs(wide(chain_of(a, b)) - 0.5 * (of.low + of.high)));
    }
    std::nth_element(radii.begin(), radii.begin() + 256, radii.end());
    slacks.push_back(radii[256] / error);
  }
  std::sort(slacks.begin(), slacks.end());
  std::cout << "slack of 15 tensors: " << slacks.front() << " to " << slacks.back() << ", median "
            << slacks[7] << "\n";
  EXPECT_LT(slacks[7], 15.0);
  EXPECT_GE(slacks.front(), 1.0);
}

/// A first product that is rounded down by all but half a unit, then terms that are lost, each by
/// all but half a unit, and last what takes the sum itself away, so that its rounding hides
/// nothing.
struct Lossy {
  Floats a, b;
  explicit Lossy(std::size_t n) : a(n, 1.0F), b(n, 0x1.ffffcp-25F) {
    a[0] = b[0] = 1.0F + 0x1p-12F;  // the product is a tie
    if (n > 1) b[n - 1] = -1.0F;
  }
};

TEST(RunningBound, ShortSumsReachMoreThanHalf) {
  for (const std::size_t n : {2U, 3U, 4U, 6U, 10U, 16U}) {
    const Lossy sum(n);
    const Interval bound = bound_of(sum.a, sum.b);
    const double radius = 0.5 * (bound.high - bound.low), middle = 0.5 * (bound.low + bound.high);
    const double error = std::abs(wide(chain_of(sum.a, sum.b)) - middle);
    EXPECT_TRUE(sum_inside(bound, NumberFormat::f32, wide(chain_of(sum.a, sum.b)))) << n;
    EXPECT_GT(error, 0.5 * radius) << n;
    // With one rounding less in the bound the right sum would lie outside.
    const double fewer = radius * static_cast<double>(n - 2) / static_cast<double>(n - 1);
    EXPECT_FALSE(sum_inside(around(middle, fewer), NumberFormat::f32, wide(chain_of(sum.a, sum.b))))
        << n;
  }
}

/// The same additions on f32.
struct Floating {
  bool rounds_sums = false, rounds_hops = false;
  float plus(float a, float b) const { return rounds_sums ? round_to_bf16(a + b) : a + b; }
  float hop(float v) const { return rounds_hops ? round_to_bf16(v) : v; }
};

TEST(GrowingSums, HoldForEveryScheduleLoopAccAndWire) {
  Random random(10);
  for (const std::size_t K : {1U, 2U, 3U, 5U, 8U, 64U})
    for (const Loop way : {Loop::none, Loop::one_way, Loop::both_full, Loop::both_half})
      for (const Schedule schedule : {Schedule::group, Schedule::tree})
        for (const bool acc : {false, true})
          for (const bool wire : {false, true})
            for (int trial = 0; trial < 20; ++trial) {
              const Floats terms = factors(K, random, 3.0);
              std::vector<Growing> growing(K);
              for (std::size_t k = 0; k < K; ++k) growing[k] = {{wide(terms[k])}};
              const scalar::InRing at{static_cast<std::int64_t>(random() % K), random() % 2 == 0};
              const float sum =
                  scalar::Adding<float, Floating>{{acc, wire}}.sum(terms, way, schedule, at);
              const auto bound = interval_of(scalar::Adding<Growing, GrowingSums>{{acc, wire}}.sum(
                  growing, way, schedule, at));
              const NumberFormat format = acc && K > 1 ? NumberFormat::bf16 : NumberFormat::f32;
              ASSERT_TRUE(sum_inside(bound, format, wide(sum))) << K;
              if (K == 1) continue;
              Floats less = terms;
              less[random() % K] *= 0.5F;
              const float wrong =
                  scalar::Adding<float, Floating>{{acc, wire}}.sum(less, way, schedule, at);
              if (!acc && !wire) {
                const double lost = std::abs(wide(wrong) - wide(sum));
                const double width = bound.high - bound.low;
                if (lost > 4 * width + 0x1p-20 * std::abs(wide(sum))) {
                  ASSERT_FALSE(sum_inside(bound, format, wide(wrong))) << K;
                }
              }
            }
}

/// A sum that overflows on its way has no bound, though the f64 one comes back.
TEST(RunningBound, SaysNothingWhereASumMayOverflow) {
  const float top = std::numeric_limits<float>::max();
  for (const auto& [a, acc] : std::vector<std::pair<Floats, bool>>{
           {{3e38F, 3e38F, -3e38F}, false},
           {{top, 0x1p103F, -top}, false},  // a tie, which becomes infinite
           {{top, -top, 1.0F}, true}}) {    // with acc=bf16 the first already
    const Floats one(a.size(), 1.0F);
    EXPECT_FALSE(std::isfinite(chain_of(a, one, acc)));
    const Interval of = bound_of(a, one, acc);
    EXPECT_TRUE(sum_inside(of, format_of(acc), wide(chain_of(a, one, acc))));
    EXPECT_FALSE(narrow(0.5 * (of.high - of.low), 3e38));
  }
  // What stays below has one.
  const Interval of = bound_of({0x1.8p127F, 0x1p125F, -0x1p127F}, {1.0F, 1.0F, 1.0F});
  EXPECT_TRUE(narrow(0.5 * (of.high - of.low), 3e38));
  // Reductions, too: of 3e38 + 3e38 − 3e38.
  std::vector<Growing> terms;
  for (const double term : {3e38, 3e38, -3e38}) terms.push_back({{wide(static_cast<float>(term))}});
  const Interval sum = interval_of(scalar::Adding<Growing, GrowingSums>{{false, false}}.sum(
      terms, Loop::none, Schedule::group, {}));
  EXPECT_FALSE(narrow(0.5 * (sum.high - sum.low), 3e38));
}

}  // namespace
}  // namespace shardproof::bounds
