// Exact sums against MPFR, by both methods, on kind and on hostile data; and plain f64 summation,
// which must be seen to fail on the same data.
#include "oracle/numeric/exact_sum.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "oracle/numeric/contract.h"
#include "tests/bits.h"
#include "weights/base/error.h"

namespace shardproof::oracle {
namespace {

using Random = std::mt19937_64;

struct Terms {
  std::vector<float> x, y;
  void add(float a, float b) {
    x.push_back(a);
    y.push_back(b);
  }
};

/// (float) RN64 of the exact sum: 2000 bits hold every sum of products of f32.
float by_mpfr(const Terms& t) {
  mpfr_t sum, product;
  mpfr_init2(sum, 2000);
  mpfr_init2(product, 2000);
  mpfr_set_zero(sum, +1);
  for (std::size_t k = 0; k < t.x.size(); ++k) {
    mpfr_set_d(product, static_cast<double>(t.x[k]), MPFR_RNDN);
    mpfr_mul_d(product, product, static_cast<double>(t.y[k]), MPFR_RNDN);
    mpfr_add(sum, sum, product, MPFR_RNDN);
  }
  const double nearest = mpfr_zero_p(sum) != 0 ? 0.0 : mpfr_get_d(sum, MPFR_RNDN);
  mpfr_clear(sum);
  mpfr_clear(product);
  return static_cast<float>(nearest);
}

float by_plain_f64(const Terms& t) {
  double sum = 0;
  for (std::size_t k = 0; k < t.x.size(); ++k)
    sum += static_cast<double>(t.x[k]) * static_cast<double>(t.y[k]);
  return static_cast<float>(sum);
}

Vectors one(const std::vector<float>& v) { return Vectors::rows_of(v, 1); }

float unit(Random& r) { return static_cast<float>(static_cast<int>(r() % 0x1fffff) - 0xfffff); }
int within(Random& r, int low, int high) {
  return low + static_cast<int>(r() % static_cast<std::uint64_t>(high - low + 1));
}
float sign(Random& r) { return r() % 2 == 0 ? 1.0F : -1.0F; }
float finite_pattern(Random& r) {
  for (;;)
    if (const float v = std::bit_cast<float>(static_cast<std::uint32_t>(r())); std::isfinite(v))
      return v;
}

struct Kind {
  std::string name;
  std::function<Terms(Random&, int n)> draw;
  bool fixed_fits;       ///< 128 bits must do for all of it, or for some
  bool plain_f64_fails;  ///< the negative control must see a difference
};

Terms shuffled(Terms t, Random& r) {
  for (std::size_t k = t.x.size(); k > 1; --k) {
    const std::size_t other = r() % k;
    std::swap(t.x[k - 1], t.x[other]);
    std::swap(t.y[k - 1], t.y[other]);
  }
  return t;
}

Terms even(Random& r, int n) {  // exponents as a layer's activations have them
  Terms t;
  for (int k = 0; k < n; ++k)
    t.add(std::ldexp(unit(r), within(r, -28, -16)), std::ldexp(unit(r), within(r, -28, -20)));
  return t;
}

Terms heavy_tailed(Random& r, int n) {
  Terms t;
  for (int k = 0; k < n; ++k)
    t.add(std::ldexp(unit(r), within(r, -100, 60)), std::ldexp(unit(r), within(r, -100, 60)));
  return t;
}

Terms cancelling(Random& r, int n) {  // pairs of opposite terms, and perhaps one speck left over
  const Terms half = even(r, n);
  Terms t = half;
  for (std::size_t k = 0; k < half.x.size(); ++k) t.add(-half.x[k], half.y[k]);
  if (r() % 2 == 0) t.add(std::ldexp(sign(r), -45), std::ldexp(1.0F, -25));
  return shuffled(t, r);
}

Terms cancelling_wide(Random& r, int n) {
  const Terms half = heavy_tailed(r, n);
  Terms t = half;
  for (std::size_t k = 0; k < half.x.size(); ++k) t.add(-half.x[k], half.y[k]);
  if (r() % 2 == 0) t.add(std::ldexp(sign(r), -120), std::ldexp(1.0F, -140));
  return shuffled(t, r);
}

/// Half an ulp of f32, give or take half an ulp of f64, give or take a speck 2^speck.
Terms ties(Random& r, int speck) {
  Terms t;
  const float s = std::ldexp(sign(r), within(r, -20, 20));
  t.add(std::ldexp(s * static_cast<float>(within(r, 0x800000, 0xffffff)), -23), 1.0F);
  t.add(s, std::ldexp(1.0F, -24));
  if (r() % 4 != 0) t.add(s, std::ldexp(sign(r), -53));
  if (r() % 4 != 0) t.add(std::ldexp(s, speck / 2), std::ldexp(sign(r), speck - speck / 2));
  return shuffled(t, r);
}

/// Sums of one sign that just fit 128 bits, or just do not.
Terms brimming(Random& r, int n) {
  Terms t;
  const int x = within(r, 36, 38), y = within(r, 36, 38);
  const auto large = [&](int exponent) { return std::ldexp(0xffffffp0F, exponent); };
  t.add(1.0F, 1.0F);
  for (int k = 1; k < n; ++k) t.add(large(x), large(y));
  return t;
}

Terms denormal(Random& r, int n) {
  Terms t;
  const auto tiny = [&] {
    return std::bit_cast<float>(static_cast<std::uint32_t>(r() & 0x807fffff));
  };
  const bool both = r() % 2 == 0;
  for (int k = 0; k < n; ++k)
    t.add(tiny(), both ? tiny() : std::ldexp(unit(r), within(r, -40, -16)));
  return t;
}

Terms overflowing(Random& r, int n) {
  Terms t;
  const float big = std::numeric_limits<float>::max();
  const bool far = r() % 2 == 0;  // products about 2^256, or about the largest f32
  for (int k = 0; k < n; ++k)
    t.add(sign(r) * big, std::ldexp(unit(r), far ? within(r, 90, 107) : within(r, -30, -18)));
  return t;
}

Terms patterns(Random& r, int n) {
  Terms t;
  for (int k = 0; k < n; ++k) t.add(finite_pattern(r), finite_pattern(r));
  return t;
}

class ExactSum : public ::testing::TestWithParam<Kind> {};

TEST_P(ExactSum, EqualsMpfrByBothMethods) {
  const Kind& kind = GetParam();
  Random r(20);
  const int trials = 1500;
  int fixed = 0, plain_wrong = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const Terms t = kind.draw(r, within(r, 1, 120));
    const Vectors x = one(t.x), y = one(t.y);
    const float expected = by_mpfr(t);
    ASSERT_EQ(bits(wide_dot(x, 0, y, 0)), bits(expected)) << "trial " << trial;
    if (const auto found = fixed_point_dot(x, 0, y, 0)) {
      ++fixed;
      ASSERT_EQ(bits(*found), bits(expected)) << "trial " << trial;
    }
    ASSERT_EQ(bits(contract(x, y).at(0)), bits(expected)) << "trial " << trial;
    plain_wrong += bits(by_plain_f64(t)) != bits(expected) ? 1 : 0;
  }
  RecordProperty("fixed_point", fixed);
  RecordProperty("plain_f64_wrong", plain_wrong);
  EXPECT_GT(fixed, 0);
  if (kind.fixed_fits) {
    EXPECT_EQ(fixed, trials);
  } else {
    EXPECT_LT(fixed, trials) << "the fallback was never needed";
  }
  if (kind.plain_f64_fails) {
    EXPECT_GT(plain_wrong, 0);
  }
}

const Kind kKinds[] = {
    {.name = "even", .draw = even, .fixed_fits = true, .plain_f64_fails = false},
    {.name = "heavy_tailed", .draw = heavy_tailed, .fixed_fits = false, .plain_f64_fails = false},
    {.name = "cancelling", .draw = cancelling, .fixed_fits = true, .plain_f64_fails = true},
    {.name = "cancelling_wide",
     .draw = cancelling_wide,
     .fixed_fits = false,
     .plain_f64_fails = true},
    {.name = "ties",
     .draw = [](Random& r, int) { return ties(r, -60); },
     .fixed_fits = true,
     .plain_f64_fails = true},
    {.name = "ties_far",
     .draw = [](Random& r, int) { return ties(r, -90); },
     .fixed_fits = true,
     .plain_f64_fails = true},
    {.name = "ties_wide",
     .draw = [](Random& r, int) { return ties(r, -140); },
     .fixed_fits = false,
     .plain_f64_fails = true},
    {.name = "brimming", .draw = brimming, .fixed_fits = false, .plain_f64_fails = false},
    {.name = "denormal", .draw = denormal, .fixed_fits = true, .plain_f64_fails = false},
    {.name = "overflowing", .draw = overflowing, .fixed_fits = true, .plain_f64_fails = false},
    {.name = "patterns", .draw = patterns, .fixed_fits = false, .plain_f64_fails = false},
};
INSTANTIATE_TEST_SUITE_P(, ExactSum, ::testing::ValuesIn(kKinds),
                         [](const auto& given) { return given.param.name; });

TEST(ExactSumExamples, AnExactZeroIsPositive) {
  EXPECT_EQ(bits(sum_of(std::vector{1.0F, -1.0F})), 0U);
  EXPECT_EQ(bits(sum_of(std::vector{-0.0F})), 0U);
  EXPECT_EQ(bits(sum_of({})), 0U);
  // A sum too small for an f32 is no exact zero.
  EXPECT_EQ(bits(sum_of_products(std::vector{-0x1p-149F}, std::vector{0x1p-149F})), bits(-0.0F));
  EXPECT_EQ(bits(contract(one({-0x1p-149F}), one({0x1p-149F})).at(0)), bits(-0.0F));
}

TEST(ExactSumExamples, HoldsManyOfTheLargestProducts) {
  const float max = std::numeric_limits<float>::max();
  Sum sum;
  for (int k = 0; k < 100000; ++k) sum.add(max, max);
  EXPECT_EQ(sum.value(), std::numeric_limits<float>::infinity());
  for (int k = 0; k < 100000; ++k) sum.add(-max, max);
  sum.add(0x1p-149F);
  EXPECT_EQ(sum.value(), 0x1p-149F);
}

TEST(ExactSumExamples, ARowTimesEveryColumn) {
  const float a[] = {1, 2, 3, 4, 5, 6};      // 2 x 3
  const float b[] = {1, 0, -1, 2, 1, 0.5F};  // 3 x 2
  EXPECT_EQ(contract(Vectors::rows_of(a, 2), Vectors::columns_of(b, 2)),
            (std::vector<float>{2, 5.5F, 5, 13}));
}

TEST(ExactSumExamples, RefusesWhatItCannotAdd) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto label = [](auto act) {
    try {
      act();
    } catch (const Error& e) {
      return e.label();
    }
    return std::string();
  };
  EXPECT_EQ(label([&] { Sum().add(inf, 0.0F); }), "oracle_finite");
  EXPECT_EQ(label([&] { Sum().add(1.0F, std::nanf("")); }), "oracle_finite");
  EXPECT_EQ(label([&] { one({1.0F, inf}); }), "oracle_finite");
  EXPECT_EQ(label([&] { contract(one({1.0F}), one({1.0F, 2.0F})); }), "oracle_length");
}

}  // namespace
}  // namespace shardproof::oracle
