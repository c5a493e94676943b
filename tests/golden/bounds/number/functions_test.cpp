// The bounds of the functions of one number: what they allow against what f64 makes, for every f32.
#include "golden/bounds/number/functions.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace shardproof::bounds {
namespace {

/// An arithmetic without errors: what is left of a radius is the share of the f64 that computed the
/// center, which is the same for any other evaluation in f64.
constexpr Arithmetic kNone{0.0, 0.0};

struct Function {
  const char* name;
  FunctionValue (*bound)(double x, const Arithmetic& by);
  long double (*wide)(long double x);  ///< the formula of docs/spec.md in long double
  void (*exact)(mpfr_t y, mpfr_t x);   ///< and with MPFR, y = f(x)
};

void quotient(mpfr_t y, mpfr_t x, mpfr_t w) {  // x/(1+exp(−w)), w is used up
  mpfr_neg(w, w, MPFR_RNDN);
  mpfr_exp(w, w, MPFR_RNDN);
  mpfr_add_ui(w, w, 1, MPFR_RNDN);
  mpfr_div(y, x, w, MPFR_RNDN);
}

constexpr double kAlpha = 0.7978845608028654, kBeta = 0.044715;

const Function kFunctions[] = {
    {"exp", exp_of, [](long double x) { return std::exp(x); },
     [](mpfr_t y, mpfr_t x) { mpfr_exp(y, x, MPFR_RNDN); }},
    {"swish", swish, [](long double x) { return x / (1 + std::exp(-x)); },
     [](mpfr_t y, mpfr_t x) {
       mpfr_set(y, x, MPFR_RNDN);
       quotient(y, x, y);
     }},
    {"exp2", exp2_of, [](long double x) { return std::exp2(x); },
     [](mpfr_t y, mpfr_t x) { mpfr_exp2(y, x, MPFR_RNDN); }},
    {"swish2", swish2, [](long double x) { return 2 * x / (1 + std::exp(-2 * x)); },
     [](mpfr_t y, mpfr_t x) {
       mpfr_mul_2ui(x, x, 1, MPFR_RNDN);
       mpfr_set(y, x, MPFR_RNDN);
       quotient(y, x, y);
     }},
    {"gelu", gelu,
     [](long double x) {
       const long double z = kAlpha * (x + kBeta * x * x * x);
       return x / (1 + std::exp(-2 * z));
     },
     [](mpfr_t y, mpfr_t x) {
       mpfr_sqr(y, x, MPFR_RNDN);
       mpfr_mul_d(y, y, kBeta, MPFR_RNDN);
       mpfr_add_ui(y, y, 1, MPFR_RNDN);
       mpfr_mul(y, y, x, MPFR_RNDN);
       mpfr_mul_d(y, y, 2 * kAlpha, MPFR_RNDN);
       quotient(y, x, y);
     }},
    {"gelu_erf", gelu_erf, [](long double x) { return 0.5L * x * std::erfc(-x / std::sqrt(2.0L)); },
     [](mpfr_t y, mpfr_t x) {
       mpfr_set_ui(y, 2, MPFR_RNDN);
       mpfr_sqrt(y, y, MPFR_RNDN);
       mpfr_div(y, x, y, MPFR_RNDN);
       mpfr_neg(y, y, MPFR_RNDN);
       mpfr_erfc(y, y, MPFR_RNDN);
       mpfr_mul(y, y, x, MPFR_RNDN);
       mpfr_div_2ui(y, y, 1, MPFR_RNDN);
     }},
};

double truth(const Function& f, double x) {
  mpfr_t from, to;
  mpfr_init2(from, 200);
  mpfr_init2(to, 200);
  mpfr_set_d(from, x, MPFR_RNDN);
  f.exact(to, from);
  const double y = mpfr_get_d(to, MPFR_RNDN);
  mpfr_clear(from);
  mpfr_clear(to);
  return y;
}

/// Of all f32 one in so many; 1 is every one. SHARDPROOF_F32_STRIDE says another than a prime that
/// takes a second.
std::uint32_t stride() {
  const char* const given = std::getenv("SHARDPROOF_F32_STRIDE");
  const int stride = given != nullptr ? std::atoi(given) : 4999;
  if (stride < 1) throw std::invalid_argument("SHARDPROOF_F32_STRIDE");
  return static_cast<std::uint32_t>(stride);
}

/// Calls see(x, bits) with one f32 in so many, if it is finite.
template <class See>
void each_f32(std::uint64_t first, std::uint64_t step, See&& see) {
  for (std::uint64_t u = first; u < 0x100000000; u += step) {
    const auto x = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(u)));
    if (std::isfinite(x)) see(x, u);
  }
}

class BoundOfFunction : public ::testing::TestWithParam<Function> {};

TEST_P(BoundOfFunction, HoldsForMpfr) {
  const Function& f = GetParam();
  each_f32(0, 99991, [&](double x, std::uint64_t) {
    const FunctionValue own = f.bound(x, kNone);
    const double y = truth(f, x);
    if (std::isinf(y)) return;  // beyond f64
    ASSERT_LE(std::abs(own.center - y), own.radius + 0x1p-53 * std::abs(y)) << std::hexfloat << x;
  });
}

/// The formula in long double. From 1024 on it is its limit, to far less than 2^-1000 (exp to less,
/// too, or beyond f64); the library's exp would take five times as long there.
long double in_long_double(const Function& f, long double x) {
  if (std::abs(x) < 1024) return f.wide(x);
  if (x < 0) return 0;
  if (f.bound == exp_of || f.bound == exp2_of) return HUGE_VALL;
  return f.bound == swish2 ? 2 * x : x;
}

/// Where long double has more digits than f64 it is the higher precision; MPFR vouches for it.
TEST_P(BoundOfFunction, HoldsForEveryF32) {
  if (LDBL_MANT_DIG < 64) GTEST_SKIP() << "long double is no wider than f64";
  const Function& f = GetParam();
  const std::uint32_t step = stride();
  constexpr unsigned kThreads = 2;
  std::vector<std::uint64_t> wrong(kThreads, 0), first(kThreads, 0);
  std::vector<double> share(kThreads, 0.0);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      each_f32(std::uint64_t{t} * step, kThreads * step, [&](double x, std::uint64_t u) {
        const FunctionValue own = f.bound(x, kNone);
        const long double y = in_long_double(f, static_cast<long double>(x));
        if (!(std::abs(y) < static_cast<long double>(DBL_MAX))) return;
        const auto error = static_cast<double>(std::abs(static_cast<long double>(own.center) - y));
        share[t] = std::max(share[t], error / own.radius);
        if (error > own.radius && wrong[t]++ == 0) first[t] = u;
      });
    });
  for (std::thread& thread : threads) thread.join();
  for (unsigned t = 0; t < kThreads; ++t)
    EXPECT_EQ(wrong[t], 0U) << "the first of bits " << std::hex << first[t];
  const double most = std::max(share[0], share[1]);
  EXPECT_GT(most, 0.0);
  std::cout << "1 of " << step << " f32: at most " << most << " of the bound\n";
}

TEST_P(BoundOfFunction, IsOneF32AlmostAlways) {
  const Function& f = GetParam();
  std::int64_t ambiguous = 0, all = 0;
  each_f32(0, 99991, [&](double x, std::uint64_t) {
    // Half of an odd subnormal is a tie; beyond the largest f32 there is nothing to round.
    if (!(std::abs(x) >= 0x1p-125)) return;
    const FunctionValue e = f.bound(x, {});
    const Interval ends = values(around(e.center, e.radius), NumberFormat::f32);
    if (!std::isfinite(ends.high)) return;
    ambiguous += ends.low != ends.high ? 1 : 0;
    ++all;
  });
  EXPECT_LT(ambiguous * 1000, all);
}

TEST_P(BoundOfFunction, KnowsItsDerivative) {
  const Function& f = GetParam();
  for (double x = -20; x < 20; x += 0.01) {
    const double h = 0x1p-20;
    const double slope = (truth(f, x + h) - truth(f, x - h)) / (2 * h);
    const double got = f.bound(x, {}).slope;
    ASSERT_NEAR(got, slope, 1e-5 * std::max(1.0, std::abs(slope))) << x;
  }
}

TEST_P(BoundOfFunction, IsTooSmallForF32Operations) {  // the negative control
  const Function& f = GetParam();
  int outside = 0;
  for (float x = -4; x < 4; x += 0x1p-6F) {
    // The formula once more with its argument off by one rounding to bf16.
    const auto off = static_cast<double>(x) * (1 + 0x1p-9);
    const FunctionValue e = f.bound(static_cast<double>(x), {});
    const Interval ends = values(around(e.center, e.radius), NumberFormat::f32);
    const auto v = static_cast<double>(static_cast<float>(truth(f, off)));
    outside += v < ends.low || v > ends.high ? 1 : 0;
  }
  EXPECT_GT(outside, 480);  // of 512
}

INSTANTIATE_TEST_SUITE_P(, BoundOfFunction, ::testing::ValuesIn(kFunctions),
                         [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace shardproof::bounds
