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

bool inside(Ffn ffn, F x, F y) {
  const Operations by{Declared()};
  const Number of = activation_forms(ffn, Softmax::base_e, {static_cast<double>(x), 0.0, 0.0}, by,
                                     Rounds::none, Format::f32);
  return holds(values(of.interval(), Format::f32), Format::f32, static_cast<double>(y));
}

TEST(Forms, OfLibrariesAreInside) {
  for (const Evaluation& e : kEvaluations)
    for (const F x : arguments()) {
      const F y = e.of(x);
      // 0·inf of an overflowing cube is nobody's value.
      if (std::isnan(y) || (std::isinf(y) && std::abs(x) < 1e38F)) continue;
      if (std::isinf(y)) continue;
      EXPECT_TRUE(inside(e.ffn, x, y)) << e.name << " " << std::hexfloat << x << " " << y;
    }
}

TEST(Forms, OfOneAreOutsideOfAnother) {
  std::mt19937 random(3);
  std::normal_distribution<F> gauss;
  int erf_for_tanh = 0, tanh_for_erf = 0, silu_for_tanh = 0, wrong_constant = 0;
  constexpr int kDrawn = 20000;
  for (int i = 0; i < kDrawn; ++i) {
    const F x = gauss(random);
    erf_for_tanh += inside(Ffn::gelu, x, kEvaluations[0].of(x)) ? 0 : 1;
    tanh_for_erf += inside(Ffn::gelu_erf, x, kEvaluations[3].of(x)) ? 0 : 1;
    silu_for_tanh += inside(Ffn::gelu, x, x * sigmoid_of(1.702F * x)) ? 0 : 1;
    wrong_constant +=
        inside(Ffn::gelu, x, 0.5F * x * (1 + std::tanh(0.7978845608F * (x + 0.0447F * x * x * x))))
            ? 0
            : 1;
  }
  EXPECT_GT(erf_for_tanh, 0.9 * kDrawn);
  EXPECT_GT(tanh_for_erf, 0.9 * kDrawn);
  EXPECT_GT(silu_for_tanh, 0.99 * kDrawn);
  EXPECT_GT(wrong_constant, 0.3 * kDrawn);
}

// Each of the two forms alone would leave the other out; with the wrong number of ulp neither
// holds.
TEST(Forms, NeedTheirUlp) {
  Declared few;
  few.ulp = Ulp::all(1);
  const Operations by(few);
  int outside = 0;
  for (const F x : arguments()) {
    if (!(std::abs(x) < 8)) continue;
    const Number of =
        activation_forms(Ffn::gelu_erf, Softmax::base_e, {static_cast<double>(x), 0.0, 0.0}, by,
                         Rounds::none, Format::f32);
    const auto y = static_cast<double>(kEvaluations[1].of(x));
    if (!holds(values(of.interval(), Format::f32), Format::f32, y)) ++outside;
  }
  EXPECT_GT(outside, 100);
}

TEST(Forms, OfAnUnknownArgumentHoldEachOfIts) {
  const Operations by{Declared()};
  for (const Ffn ffn : {Ffn::swiglu, Ffn::gelu, Ffn::gelu_erf})
    for (const double x : {-3.0, -0.5, 0.0, 0.75, 4.0}) {
      const Number wide =
          activation_forms(ffn, Softmax::base_e, {x, 0.25, 0.125}, by, Rounds::none, Format::f32);
      for (const double d : {-0.25, -0.125, 0.125, 0.25}) {
        const Number of = activation_forms(ffn, Softmax::base_e, {x + d, 0.0, 0.0}, by,
                                           Rounds::none, Format::f32);
        EXPECT_LE(std::abs(of.center - wide.center), wide.worst);
        if (std::abs(d) <= 0.125) {
          EXPECT_LE(std::abs(of.center - wide.center), wide.likely);
        }
      }
    }
}

TEST(Forms, OfBf16HoldEverySubsetOfRoundings) {
  const Operations by{Declared()};
  std::mt19937 random(9);
  std::normal_distribution<double> gauss;
  const auto maybe = [&](float v) {
    return random() % 2 == 0 ? v
                             : static_cast<float>(nearest(static_cast<double>(v), Format::bf16));
  };
  for (int i = 0; i < 20000; ++i) {
    const auto x = static_cast<float>(nearest(2 * gauss(random), Format::bf16));
    const float cube = maybe(maybe(x * x) * x);
    const float inner = maybe(x + maybe(maybe(0.044715F) * cube));
    const float t = maybe(std::tanh(maybe(maybe(0.79788456F) * inner)));
    const float y = 0.5F * x * maybe(1 + t);
    const Number of =
        activation_forms(Ffn::gelu, Softmax::base_e, {static_cast<double>(x), 0.0, 0.0}, by,
                         Rounds::some, Format::bf16);
    EXPECT_TRUE(holds(values(of.interval(), Format::f32), Format::f32, static_cast<double>(y)))
        << x;
  }
}

// Every operation of an f16 engine is rounded to f16, and may overflow on its way to a number that
// is none: what follows saturates.
TEST(Forms, OfF16HoldWhatOverflowsOnTheWay) {
  const Operations by{Declared()};
  const auto f16 = [](float v) {
    return static_cast<float>(nearest(static_cast<double>(v), Format::f16));
  };
  int overflows = 0;
  for (float x = -70.0F; x <= 70.0F; x += 0.25F) {
    const float e = f16(std::exp(-x));
    const float silu = x / f16(1 + e);
    const float cube = f16(f16(x * x) * x);
    const float t = f16(std::tanh(f16(0.79785156F * f16(x + f16(f16(0.044715F) * cube)))));
    const float gelu = f16(0.5F * x) * f16(1 + t);
    overflows += std::isinf(e) || std::isinf(cube) ? 1 : 0;
    for (const auto& [ffn, y] : {std::pair{Ffn::swiglu, silu}, {Ffn::gelu, gelu}}) {
      const Number of = activation_forms(ffn, Softmax::base_e, {static_cast<double>(x), 0.0, 0.0},
                                         by, Rounds::some, Format::f16);
      const Interval ends = values(of.interval(), Format::f16);
      EXPECT_TRUE(holds(ends, Format::f16, static_cast<double>(f16(y)))) << x << " " << y;
      // And nothing that is a tenth larger than x, or a tenth of it off.
      for (const float wrong : {1.1F * x + 0.1F, -0.1F * std::abs(x) - 0.5F})
        EXPECT_FALSE(holds(ends, Format::f16, static_cast<double>(f16(wrong))))
            << x << " " << wrong;
    }
  }
  EXPECT_GT(overflows, 200);
}

TEST(Exponential, IsExpOrExp2OfScaledScores) {
  const Operations by{Declared()};
  std::mt19937 random(2);
  std::normal_distribution<float> gauss(0, 4);
  int outside = 0;
  for (int i = 0; i < 20000; ++i) {
    const float s = gauss(random), top = s + std::abs(gauss(random));
    const Number of =
        exponential_forms(Softmax::base_e, {static_cast<double>(s), 0.0, 0.0},
                          {static_cast<double>(top), 0.0, 0.0}, by, by, Rounds::none, Format::f32);
    const auto in = [&](float y) {
      return holds(values(of.interval(), Format::f32), Format::f32, static_cast<double>(y));
    };
    EXPECT_TRUE(in(std::exp(s - top)));
    EXPECT_TRUE(in(std::exp2(s * 1.44269504F - top * 1.44269504F)));
    outside += in(std::exp(s - top) * (1 + 1e-5F)) ? 0 : 1;
  }
  EXPECT_GT(outside, 10000);
}

}  // namespace
}  // namespace shardproof::bounds
