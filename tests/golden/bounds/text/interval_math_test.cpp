// Intervals of a text's operations: what f32 arithmetic makes of any numbers inside the operands'
// intervals is inside the result's, and not much narrower intervals would do.
#include "golden/bounds/text/interval_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "oracle/walk/reduction.h"
#include "oracle/walk/selection.h"
#include "tests/golden/bounds/text/line_math.h"
#include "weights/base/bf16.h"
#include "weights/text/model_text.h"

namespace shardproof::bounds {
namespace {

/// How much of an interval's half the farthest of many results takes.
struct Reach {
  double most = 0.0;
  bool inside = true;
  void see(const Estimate& in, double v) {
    if (v == in.number.center) return;
    const double share = std::abs(v - in.number.center) / in.number.worst;
    most = std::max(most, share);
    inside = inside && share <= 1.0;
  }
};

constexpr int kTimes = 4000;
struct Unary {
  const char* name;
  ModelOp op;
  std::function<double(float)> in_f32;
  double low, high;
  double least_reach;  ///< of exact operands; 0: nothing rounds
};

double f(float v) { return static_cast<double>(v); }

const Unary kUnary[] = {
    {"exp", ModelOp::exp, [](float x) { return f(std::exp(x)); }, -3, 3, 0.03},
    {"exp as exp2", ModelOp::exp, [](float x) { return f(std::exp2(x * 1.442695F)); }, -60, 60,
     0.1},
    {"exp2", ModelOp::exp2, [](float x) { return f(std::exp2(x)); }, -3, 3, 0.03},
    {"log", ModelOp::log, [](float x) { return f(std::log(x)); }, 0.1, 9, 0.03},
    {"sqrt", ModelOp::sqrt, [](float x) { return f(std::sqrt(x)); }, 0.1, 9, 0.1},
    {"sqrt by rsqrt", ModelOp::sqrt, [](float x) { return f(x * (1.0F / std::sqrt(x))); }, 0.1, 9,
     0.2},
    {"tanh", ModelOp::tanh, [](float x) { return f(std::tanh(x)); }, -3, 3, 0.02},
    {"sigmoid", ModelOp::sigmoid, [](float x) { return f(1.0F / (1.0F + std::exp(-x))); }, -3, 3,
     0.05},
    {"relu", ModelOp::relu, [](float x) { return f(std::max(x, 0.0F)); }, -3, 3, 0},
    {"abs", ModelOp::abs, [](float x) { return f(std::abs(x)); }, -3, 3, 0},
    {"floor", ModelOp::floor, [](float x) { return f(std::floor(x)); }, -3, 3, 0},
    {"round", ModelOp::round, [](float x) { return f(std::nearbyint(x)); }, -3, 3, 0},
    {"bf16", ModelOp::bf16, [](float x) { return f(round_to_bf16(x)); }, -3, 3, 0},
    {"silu", ModelOp::silu, [](float x) { return f(x / (1.0F + std::exp(-x))); }, -3, 3, 0.03},
    {"gelu", ModelOp::gelu,
     [](float x) { return f(0.5F * x * (1.0F + std::erf(x * 0.70710678F))); }, -3, 3, 0.02},
    {"gelu_tanh", ModelOp::gelu_tanh,
     [](float x) {
       return f(0.5F * x * (1.0F + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x))));
     },
     -3, 3, 0.02},
};

TEST(IntervalMath, FunctionsHoldWhatF32Makes) {
  for (const Unary& row : kUnary)
    for (const double radius : {0.0, 1e-5}) {
      const IntervalMath math = math_of(f32());
      Random random(5);
      Reach reach;
      for (int i = 0; i < kTimes; ++i) {
        const auto [x, inside] = operand(random, row.low, row.high, radius);
        reach.see(math.function(row.op, x), row.in_f32(inside));
      }
      EXPECT_TRUE(reach.inside) << row.name << " with radius " << radius << ": " << reach.most;
      if (radius == 0) {
        EXPECT_GE(reach.most, row.least_reach) << row.name;
      }
    }
}

/// Where a function jumps or bends the interval has both sides; a number without a radius has none.
TEST(IntervalMath, FunctionsOfWideIntervals) {
  const IntervalMath math = math_of(f32());
  const auto ends = [&](ModelOp op, double center, double radius) {
    const Interval in = math.function(op, {{center, radius, radius}}).number.interval();
    return std::pair(std::round(in.low * 1000) / 1000, std::round(in.high * 1000) / 1000);
  };
  EXPECT_EQ(ends(ModelOp::floor, 1.9, 0.2), std::pair(1.0, 2.0));
  EXPECT_EQ(ends(ModelOp::round, 1.4, 0.2), std::pair(1.0, 2.0));
  EXPECT_EQ(ends(ModelOp::relu, -0.5, 1.0), std::pair(-0.0, 0.5));
  EXPECT_EQ(ends(ModelOp::abs, -1.0, 0.5), std::pair(0.5, 1.5));
  EXPECT_EQ(math.function(ModelOp::relu, {{-2, 0, 0}}).number.worst, 0);
  EXPECT_EQ(math.function(ModelOp::sqrt, {{1, 2, 2}}).number.worst, kInfinity);
  EXPECT_EQ(math.function(ModelOp::log, {{1, 1, 1}}).number.worst, kInfinity);
  EXPECT_EQ(math.function(ModelOp::floor, IntervalMath::unknown()).number.worst, kInfinity);
  EXPECT_TRUE(std::isfinite(math.function(ModelOp::sqrt, {{0, 0, 0}}).number.worst));
}

TEST(IntervalMath, PairsHoldWhatF32Makes) {
  const IntervalMath math = math_of(f32());
  for (const double radius : {0.0, 1e-5}) {
    Random random(7);
    Reach add, sub, mul, div, reciprocal, larger, three;
    for (int i = 0; i < kTimes; ++i) {
      const auto [a, x] = operand(random, -2, 2, radius);
      const auto [b, y] = operand(random, 0.5, 2, radius);
      const auto [c, z] = operand(random, -2, 2, radius);
      add.see(math.pair(ModelOp::add, a, b), f(x + y));
      sub.see(math.pair(ModelOp::sub, a, b), f(x - y));
      mul.see(math.pair(ModelOp::mul, a, b), f(x * y));
      div.see(math.pair(ModelOp::div, a, b), f(x / y));
      reciprocal.see(math.pair(ModelOp::div, a, b), f(x * (1.0F / y)));
      larger.see(math.pair(ModelOp::larger, a, b), f(std::max(x, y)));
      three.see(math.pair(ModelOp::add, math.pair(ModelOp::add, a, b), c), f(x + (y + z)));
    }
    for (const Reach& reach : {add, sub, mul, div, reciprocal, larger, three})
      EXPECT_TRUE(reach.inside) << radius << " " << reach.most;
    if (radius > 0) continue;
    EXPECT_EQ(larger.most, 0.0);
    for (const Reach& reach : {add, sub, mul, div, reciprocal, three}) EXPECT_GT(reach.most, 0.3);
  }
  const Estimate zero{{0, 0.5, 0.5}};
  EXPECT_EQ(math.pair(ModelOp::div, {{1, 0, 0}}, zero).number.worst, kInfinity);
}

/// A fused kernel scales scores before it takes their difference.
TEST(IntervalMath, ExponentialsOfDifferencesMayBeOfScaledTerms) {
  const IntervalMath math = math_of(f32());
  Random random(11);
  Reach reach;
  for (int i = 0; i < kTimes; ++i) {
    const auto [a, x] = operand(random, 20, 30, 0);
    const auto [b, y] = operand(random, 20, 30, 0);
    constexpr float kLog2E = 1.44269504F;
    reach.see(math.function(ModelOp::exp, math.pair(ModelOp::sub, a, b)),
              f(std::exp2(x * kLog2E - y * kLog2E)));
  }
  EXPECT_TRUE(reach.inside) << reach.most;
  EXPECT_GT(reach.most, 0.1);
}

TEST(IntervalMath, ResultsMayBeStoredIn16Bits) {
  const IntervalMath math = math_of(bf16_line());
  Random random(13);
  for (int i = 0; i < kTimes; ++i) {
    const auto [a, x] = operand(random, -2, 2, 0);
    const auto [b, y] = operand(random, 0.5, 2, 0);
    for (const ModelOp op : {ModelOp::add, ModelOp::sub, ModelOp::mul, ModelOp::div}) {
      const float once = op == ModelOp::add   ? x + y
                         : op == ModelOp::sub ? x - y
                         : op == ModelOp::mul ? x * y
                                              : x / y;
      const Interval in = math.pair(op, a, b).number.interval();
      for (const float v : {once, round_to_bf16(once)}) {
        EXPECT_LE(in.low, f(v)) << row_of(op).name;
        EXPECT_GE(in.high, f(v)) << row_of(op).name;
      }
    }
    for (const Unary& row : kUnary) {
      const Estimate of{{std::abs(a.number.center) + 0.1, 0, 0}};
      const double once = row.in_f32(static_cast<float>(of.number.center));
      const Interval in = math.function(row.op, of).number.interval();
      for (const double v : {once, f(round_to_bf16(static_cast<float>(once)))}) {
        if (row.op == ModelOp::floor || row.op == ModelOp::round || row.op == ModelOp::relu ||
            row.op == ModelOp::abs || row.op == ModelOp::bf16)
          continue;  // what is a 16-bit number stays one
        EXPECT_LE(in.low, v) << row.name;
        EXPECT_GE(in.high, v) << row.name;
      }
    }
  }
}

TEST(IntervalMath, SumsHoldEveryOrder) {
  const IntervalMath math = math_of(f32());
  Random random(17);
  Reach reach;
  for (int i = 0; i < 500; ++i) {
    std::vector<float> terms;
    IntervalMath::Sum numbers = math.sum(), products = math.sum();
    for (int k = 0; k < 40; ++k) {
      const auto [a, x] = operand(random, 0, 2, 0);
      terms.push_back(x);
      numbers.add(a);
      products.add(a, {{0.5, 0, 0}});
    }
    float sum = 0, back = 0;
    for (const float x : terms) sum += x;
    for (std::size_t k = terms.size(); k-- > 0;) back += 0.5F * terms[k];
    reach.see(numbers.value(), f(sum));
    reach.see(products.value(), f(back));
  }
  EXPECT_TRUE(reach.inside);
  EXPECT_GT(reach.most, 0.02);
}

TEST(IntervalMath, ASumMayBeStoredIn16Bits) {
  const IntervalMath math = math_of(bf16_line());
  IntervalMath::Sum of = math.sum();
  of.add(IntervalMath::number(256));
  of.add(IntervalMath::number(1), IntervalMath::number(0.75));
  const Interval in = of.value().number.interval();
  EXPECT_LE(in.low, 256);
  EXPECT_GE(in.high, 256.75);
}

TEST(IntervalMath, Ranges) {
  const IntervalMath math = math_of(f32());
  const auto within = [&](double center, double radius) {
    return math.ranged(ModelOp::within, {{center, radius, radius}}, -2, 1).number;
  };
  EXPECT_EQ(within(1, 0).interval().low, 1);
  EXPECT_EQ(within(-2, 0).interval().high, 1);
  EXPECT_EQ(within(1.5, 0).interval().high, 0);
  EXPECT_EQ(within(-2.5, 0).interval().low, 0);
  EXPECT_LE(within(1, 0.1).interval().low, 0);
  EXPECT_GE(within(1, 0.1).interval().high, 1);
  EXPECT_EQ(within(0, 0.5).worst, 0);
  const auto clamped = [&](double center, double radius) {
    return math.ranged(ModelOp::clamp, {{center, radius, radius}}, -2, 1).number;
  };
  EXPECT_EQ(clamped(3, 0.5).center, 1);
  EXPECT_EQ(clamped(3, 0.5).worst, 0);
  EXPECT_EQ(clamped(-3, 0).center, -2);
  EXPECT_LE(clamped(0.5, 1).interval().low, -0.5);
  EXPECT_GE(clamped(0.5, 1).interval().low, -0.5 - 0x1p-49);
}

TEST(IntervalMath, TopHasThoseThatAreSurelyIn) {
  const auto marks = [](const std::vector<Number>& all, std::size_t k) {
    std::vector<Estimate> numbers;
    for (const Number& n : all) numbers.push_back({n});
    std::string text;
    for (const Estimate& e : IntervalMath::top(numbers, k))
      text += e.number.worst > 0 ? '?' : e.number.center == 1 ? '1' : '0';
    return text;
  };
  EXPECT_EQ(marks({{3, 0, 0}, {1, 0, 0}, {2, 0, 0}}, 2), "101");
  EXPECT_EQ(marks({{2, 0, 0}, {2, 0, 0}, {2, 0, 0}}, 2), "110");  // of equals the first
  EXPECT_EQ(marks({{3, 0, 0}, {1, 0.6, 0.6}, {2, 0.6, 0.6}}, 2), "1??");
  EXPECT_EQ(marks({{3, 0, 0}, {1, 0.4, 0.4}, {2, 0.4, 0.4}}, 2), "101");
  EXPECT_EQ(marks({{3, kInfinity, kInfinity}, {1, 0, 0}}, 1), "??");
  EXPECT_EQ(marks({{3, 0, 0}, {1, 0, 0}}, 2), "11");
}

TEST(IntervalMath, IntegersOfPositionsAreExact) {
  LineArithmetic line = bf16_line();
  line.integral = true;
  const IntervalMath math = math_of(line);
  const Estimate a{{1001, 0, 0}}, b{{3, 0, 0}};
  const std::pair<ModelOp, double> kPairs[] = {
      {ModelOp::add, 1004}, {ModelOp::sub, 998}, {ModelOp::mul, 3003}, {ModelOp::larger, 1001}};
  for (const auto& [op, value] : kPairs) {
    EXPECT_EQ(math.pair(op, a, b).number.center, value);
    EXPECT_EQ(math.pair(op, a, b).number.worst, 0) << row_of(op).name;
    EXPECT_EQ(math.pair(op, a, IntervalMath::unknown()).number.worst, kInfinity);
    EXPECT_EQ(math.pair(op, IntervalMath::unknown(), b).number.worst, kInfinity);
  }
}

TEST(IntervalMath, NumbersOfTheText) {
  const IntervalMath math = math_of(f32()), narrow = math_of(bf16_line());
  EXPECT_EQ(math.word("0.5").number.worst, 0);
  EXPECT_EQ(narrow.word("0.5").number.worst, 0);
  EXPECT_EQ(math.word("257").number.worst, 0);
  EXPECT_LE(narrow.word("257").number.interval().low, 256);
  EXPECT_GE(math.word("0.1").number.worst, std::abs(0.1 - f(0.1F)));
  EXPECT_LE(math.word("0.1").number.worst, 0.1 * 0x1p-23);
  LineArithmetic exactly;
  exactly.exactly = true;
  EXPECT_EQ(math_of(exactly).word("0.1").number.worst, 0);
  EXPECT_EQ(math_of(exactly).word("0.1").number.center, 0.1);
}

TEST(IntervalMath, StoresAndSends) {
  const IntervalMath narrow = math_of(bf16_line());
  const Estimate x{{1.001, 0, 0}};
  EXPECT_EQ(narrow.stored(x).number.center, f(round_to_bf16(1.001F)));
  EXPECT_EQ(narrow.function(ModelOp::store, x).number.center, f(round_to_bf16(1.001F)));
  LineArithmetic exactly = bf16_line();
  exactly.exactly = true;
  EXPECT_EQ(math_of(exactly).stored(x).number.center, 1.001);
  EXPECT_EQ(narrow.gathered(x).number.worst, 0);
  LineArithmetic sent = bf16_line();
  sent.declared.wire = NumberFormat::bf16;
  sent.declared.wire_roundings = 1;
  EXPECT_GT(math_of(sent).gathered(x).number.worst, 0);
  LineArithmetic loop = bf16_line();
  loop.in_loop = NumberFormat::f32;
  const Estimate y{{0.1, 0, 0}};
  EXPECT_EQ(math_of(loop).named(y).number.center, f(0.1F));
  loop.in_loop = NumberFormat::bf16;
  const Interval in = math_of(loop).named(y).number.interval();
  EXPECT_LE(in.low, 0.1);
  EXPECT_GE(in.high, f(round_to_bf16(0.1F)));
  EXPECT_EQ(narrow.named(y).number.center, 0.1);
  EXPECT_EQ(IntervalMath::negative({{2, 0.5, 0.25}}).number.center, -2);
  EXPECT_EQ(IntervalMath::negative({{2, 0.5, 0.25}}).number.worst, 0.5);
}

/// Nothing rounds a product with 0: a weight of what is not there takes no part in what follows.
TEST(IntervalMath, ZeroTimesANumberIsZero) {
  for (const LineArithmetic& line : {f32(), bf16_line()}) {
    const IntervalMath math = math_of(line);
    const Estimate zero = IntervalMath::number(0), some{{3.0, 0.5, 0.5}};
    for (const Estimate& product :
         {math.pair(ModelOp::mul, zero, some), math.pair(ModelOp::mul, some, zero)})
      EXPECT_TRUE(IntervalMath::is_zero(product));
    EXPECT_FALSE(IntervalMath::is_known(math.pair(ModelOp::mul, zero, IntervalMath::unknown())));
    EXPECT_FALSE(IntervalMath::is_zero(math.pair(ModelOp::mul, {{0.0, 0.1, 0.1}}, some)));
  }
}

}  // namespace
}  // namespace shardproof::bounds
