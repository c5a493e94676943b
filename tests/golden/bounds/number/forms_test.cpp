// Functions as textbooks and libraries write them, in f32: each lies inside of the forms' hull, and
// a formula taken for another does not.
#include "golden/bounds/number/forms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>

namespace shardproof::bounds {
namespace {

using F = float;

struct Evaluation {
  const char* name;
  Ffn ffn;
  F (*of)(F x);
};

/// So many neighbours away from zero, or towards it and no further; zero stays.
F pushed(F v, int ulp) {
  constexpr std::uint32_t kSign = 0x80000000U;
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const std::int64_t size = bits & ~kSign;
  const auto moved =
      static_cast<std::uint32_t>(size == 0 ? 0 : std::max<std::int64_t>(size + ulp, 0));
  return std::bit_cast<F>((bits & kSign) | moved);
}
F sigmoid_of(F x) { return 1 / (1 + std::exp(-x)); }

const Evaluation kEvaluations[]{
    {"erf", Ffn::gelu_erf, [](F x) { return 0.5F * x * (1 + std::erf(x / std::sqrt(2.0F))); }},
    {"erf of a constant, five ulp off", Ffn::gelu_erf,
     [](F x) { return x * 0.5F * (1 + pushed(std::erf(x * 0.70710678F), -5)); }},
    {"erfc", Ffn::gelu_erf, [](F x) { return 0.5F * x * std::erfc(-x * 0.70710678F); }},
    {"tanh", Ffn::gelu,
     [](F x) { return 0.5F * x * (1 + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x))); }},
    {"tanh of x(1+ax²), five ulp off", Ffn::geglu,
     [](F x) {
       return 0.5F * x * (1 + pushed(std::tanh(x * 0.7978845608F * (1 + 0.044715F * x * x)), -5));
     }},
    {"tanh of a power", Ffn::gelu,
     [](F x) {
       return x * (0.5F * (1 + std::tanh(0.7978845608F * (x + 0.044715F * std::pow(x, 3.0F)))));
     }},
    {"the tanh form by sigmoid", Ffn::gelu,
     [](F x) { return x * sigmoid_of(1.5957691216F * (x + 0.044715F * x * x * x)); }},
    {"x over 1 + exp", Ffn::swiglu, [](F x) { return x / (1 + std::exp(-x)); }},
    {"x times sigmoid, two ulp off", Ffn::swiglu, [](F x) { return x * pushed(sigmoid_of(x), 2); }},
    {"by tanh", Ffn::swiglu, [](F x) { return x * (0.5F + 0.5F * std::tanh(0.5F * x)); }},
};

/// Floats of all sizes, and ordinary ones.
std::vector<F> arguments() {
  std::vector<F> all{0.0F,   -0.0F,  1.0F,   -1.0F, 1e-45F, -1e-45F, 3e38F,
                     -3e38F, -88.8F, -52.0F, 88.8F, -5.6F,  -10.0F,  20.0F};
  std::mt19937 random(5);
  std::normal_distribution<F> gauss(0, 2);
  for (int i = 0; i < 20000; ++i) all.push_back(gauss(random));
  for (int i = 0; i < 20000; ++i) {
    const F v = std::bit_cast<F>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(v)) all.push_back(v);
  }
  return all;
}

/// The hull of a function's forms at a number.
Number form(Ffn ffn, const Number& x, Rounds rounds = Rounds::none,
            NumberFormat values = NumberFormat::f32, const DeclaredArithmetic& by = {}) {
  return activation_forms(ffn, Softmax::base_e, x, Operations(by), rounds, values);
}
Number form(Ffn ffn, F x, Rounds rounds = Rounds::none, NumberFormat values = NumberFormat::f32,
            const DeclaredArithmetic& by = {}) {
  return form(ffn, Number{static_cast<double>(x), 0.0, 0.0}, rounds, values, by);
}
bool inside(const Number& of, F y, NumberFormat format = NumberFormat::f32) {
  return holds(values(of.interval(), format), format, static_cast<double>(y));
}
F nearest_of(F v, NumberFormat format) {
  return static_cast<F>(nearest(static_cast<double>(v), format));
}

TEST(Forms, OfLibrariesAreInside) {
  for (const Evaluation& e : kEvaluations)
    for (const F x : arguments()) {
      const F y = e.of(x);
      // 0·inf of an overflowing cube is nobody's value.
      if (!std::isfinite(y)) continue;
      EXPECT_TRUE(inside(form(e.ffn, x), y)) << e.name << " " << std::hexfloat << x << " " << y;
    }
}

TEST(Forms, OfOneAreOutsideOfAnother) {
  std::mt19937 random(3);
  std::normal_distribution<F> gauss;
  const struct {
    Ffn ffn;
    F (*other)(F x);
    double least;  ///< share of numbers that it is outside of
  } kOthers[]{
      {Ffn::gelu, kEvaluations[0].of, 0.9},
      {Ffn::gelu_erf, kEvaluations[3].of, 0.9},
      {Ffn::gelu, [](F x) { return x * sigmoid_of(1.702F * x); }, 0.99},
      {Ffn::gelu,  // a wrong constant
       [](F x) { return 0.5F * x * (1 + std::tanh(0.7978845608F * (x + 0.0447F * x * x * x))); },
       0.3}};
  constexpr int kDrawn = 20000;
  for (const auto& [ffn, other, least] : kOthers) {
    int outside = 0;
    for (int i = 0; i < kDrawn; ++i) {
      const F x = gauss(random);
      outside += inside(form(ffn, x), other(x)) ? 0 : 1;
    }
    EXPECT_GT(outside, least * kDrawn);
  }
}

// Each of the two forms alone would leave the other out; with the wrong number of ulp neither
// holds.
TEST(Forms, NeedTheirUlp) {
  DeclaredArithmetic few;
  few.ulp = Ulp::all(1);
  int outside = 0;
  for (const F x : arguments())
    if (std::abs(x) < 8 && !inside(form(Ffn::gelu_erf, x, Rounds::none, NumberFormat::f32, few),
                                   kEvaluations[1].of(x)))
      ++outside;
  EXPECT_GT(outside, 100);
}

TEST(Forms, OfAnUnknownArgumentHoldEachOfIts) {
  for (const Ffn ffn : {Ffn::swiglu, Ffn::gelu, Ffn::gelu_erf})
    for (const double x : {-3.0, -0.5, 0.0, 0.75, 4.0}) {
      const Number wide = form(ffn, Number{x, 0.25, 0.125});
      for (const double d : {-0.25, -0.125, 0.125, 0.25}) {
        const double off = std::abs(form(ffn, Number{x + d, 0.0, 0.0}).center - wide.center);
        EXPECT_LE(off, std::abs(d) <= 0.125 ? wide.likely : wide.worst);
      }
    }
}

TEST(Forms, OfBf16HoldEverySubsetOfRoundings) {
  std::mt19937 random(9);
  std::normal_distribution<F> gauss;
  const auto maybe = [&](F v) { return random() % 2 == 0 ? v : nearest_of(v, NumberFormat::bf16); };
  for (int i = 0; i < 20000; ++i) {
    const F x = nearest_of(2 * gauss(random), NumberFormat::bf16);
    const F cube = maybe(maybe(x * x) * x);
    const F inner = maybe(x + maybe(maybe(0.044715F) * cube));
    const F t = maybe(std::tanh(maybe(maybe(0.79788456F) * inner)));
    EXPECT_TRUE(
        inside(form(Ffn::gelu, x, Rounds::some, NumberFormat::bf16), 0.5F * x * maybe(1 + t)))
        << x;
  }
}

// Every operation of an f16 engine is rounded to f16, and may overflow on its way to a number that
// is none: what follows saturates.
TEST(Forms, OfF16HoldWhatOverflowsOnTheWay) {
  const auto f16 = [](F v) { return nearest_of(v, NumberFormat::f16); };
  int overflows = 0;
  for (F x = -70.0F; x <= 70.0F; x += 0.25F) {
    const F e = f16(std::exp(-x));
    const F silu = x / f16(1 + e);
    const F cube = f16(f16(x * x) * x);
    const F t = f16(std::tanh(f16(0.79785156F * f16(x + f16(f16(0.044715F) * cube)))));
    const F gelu = f16(0.5F * x) * f16(1 + t);
    overflows += std::isinf(e) || std::isinf(cube) ? 1 : 0;
    for (const auto& [ffn, y] : {std::pair{Ffn::swiglu, silu}, {Ffn::gelu, gelu}}) {
      const Number of = form(ffn, x, Rounds::some, NumberFormat::f16);
      EXPECT_TRUE(inside(of, f16(y), NumberFormat::f16)) << x << " " << y;
      // And nothing that is a tenth larger than x, or a tenth of it off.
      for (const F wrong : {1.1F * x + 0.1F, -0.1F * std::abs(x) - 0.5F})
        EXPECT_FALSE(inside(of, f16(wrong), NumberFormat::f16)) << x << " " << wrong;
    }
  }
  EXPECT_GT(overflows, 200);
}

TEST(Exponential, IsExpOrExp2OfScaledScores) {
  const Operations by{DeclaredArithmetic()};
  std::mt19937 random(2);
  std::normal_distribution<float> gauss(0, 4);
  int outside = 0;
  for (int i = 0; i < 20000; ++i) {
    const float s = gauss(random), top = s + std::abs(gauss(random));
    const Number of = exponential_forms(Softmax::base_e, {static_cast<double>(s), 0.0, 0.0},
                                        {static_cast<double>(top), 0.0, 0.0}, by, by, Rounds::none,
                                        NumberFormat::f32);
    const auto in = [&](F y) { return inside(of, y); };
    EXPECT_TRUE(in(std::exp(s - top)));
    EXPECT_TRUE(in(std::exp2(s * 1.44269504F - top * 1.44269504F)));
    outside += in(std::exp(s - top) * (1 + 1e-5F)) ? 0 : 1;
  }
  EXPECT_GT(outside, 10000);
}

}  // namespace
}  // namespace shardproof::bounds
