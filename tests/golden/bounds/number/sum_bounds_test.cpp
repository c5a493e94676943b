// Bounds of sums in any order: no right sum lies outside, of kind data and of hostile; what each
// theorem's hypothesis excludes is shown outside of it.
#include "golden/bounds/number/sum_bounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "golden/bounds/number/emulation.h"
#include "tests/golden/bounds/number/sum_data.h"
#include "weights/base/bf16.h"

namespace shardproof::bounds {
namespace {

const std::vector<std::size_t> kLengths{2, 3, 17, 64, 257, 1024, 4096};

double audited(const Products& products, const Number& of) {
  return of.likely + residue_audit(products, largest_partial(sum_of(products).sum()));
}

// T1: whatever the order, the tree and the data.
TEST(SumBound, HoldsWhateverTheOrder) {
  for (const std::string& kind : kinds_of_data())
    for (const std::size_t n : kLengths)
      for (unsigned seed = 0; seed < 4; ++seed) {
        const Products p = drawn_products(kind, n, seed);
        const Number of = sum_of(p).value({});
        EXPECT_LE(of.likely, of.worst);
        for (const double sum : all_sums(p, seed))
          EXPECT_LE(std::abs(sum - of.center), of.worst) << kind << " " << n << " " << seed;
      }
}

// It is at most that of every product through every rounding, and half of it where sums cancel.
TEST(SumBound, OfCancellingSumsIsHalf) {
  const Products p = drawn_products("cancelling", 4096, 1);
  const Number of = sum_of(p).value({});
  const double before = DeclaredArithmetic().growth(4096) * sum_of(p).sum().size;
  EXPECT_LT(of.worst, 0.51 * before);
  EXPECT_GT(of.worst, 0.49 * before);
}

// A bound that counts one rounding less than there are is passed by a sum of two.
TEST(SumBound, OfTwoProductsIsReached) {
  double most = 0.0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    const Products p = drawn_products("positive", 2, seed);
    const Number of = sum_of(p).value({});
    most = std::max(most, std::abs(static_cast<double>(chain_of(p, false)) - of.center) / of.worst);
  }
  EXPECT_GT(most, 0.5);
  EXPECT_LE(most, 1.0);
}

// T3 with T5: what the likely bound does not hold of constants, the audit adds; of other data it
// holds by far.
TEST(LikelyBound, HoldsWithItsAudit) {
  for (const std::string& kind : kinds_of_data())
    for (const std::size_t n : {1024U, 4096U, 16384U})
      for (unsigned seed = 0; seed < 3; ++seed) {
        const Products p = drawn_products(kind, n, seed);
        const Number of = sum_of(p).value({});
        for (const double sum : all_sums(p, seed))
          EXPECT_LE(std::abs(sum - of.center), audited(p, of)) << kind << " " << n << " " << seed;
      }
}

TEST(LikelyBound, WithoutItsAuditIsPassedByChainsOfConstants) {
  for (const char* kind : {"constant", "two-valued", "bf16 constant", "ramp", "steps"}) {
    double most = 0.0;
    for (unsigned seed = 0; seed < 12; ++seed) {
      const Products p = drawn_products(kind, 16384, seed);
      const Number of = sum_of(p).value({});
      for (const double sum : natural_sums(p))
        most = std::max(most, std::abs(sum - of.center) / of.likely);
    }
    EXPECT_GT(most, 1.0) << kind;
  }
  for (const char* kind : {"gauss", "positive", "heavy", "cancelling"}) {
    const Products p = drawn_products(kind, 16384, 5);
    const Number of = sum_of(p).value({});
    for (const double sum : all_sums(p, 5)) EXPECT_LT(std::abs(sum - of.center), 0.3 * of.likely);
  }
}

TEST(LikelyBound, CanBeSwitchedOff) {
  DeclaredArithmetic worst;
  worst.confident = false;
  const Products p = drawn_products("gauss", 4096, 1);
  const Number with = sum_of(p).value({}), without = sum_of(p).value(worst);
  EXPECT_LT(with.likely, 0.3 * with.worst);
  EXPECT_EQ(without.likely, without.worst);
  EXPECT_EQ(without.worst, with.worst);
}

// What it is for: a term left out, operands with fewer digits, seen at K = 4096.
TEST(LikelyBound, SeesOperandsWithFewerDigits) {
  const Products p = drawn_products("gauss", 4096, 3);
  const Number of = sum_of(p).value({});
  Products bf16 = p, without(p.begin() + 1, p.end());
  for (auto& [a, b] : bf16) a = nearest(a, NumberFormat::bf16);
  EXPECT_GT(std::abs(sum_of(bf16).sum().value - of.center), of.likely);
  EXPECT_GT(std::abs(sum_of(without).sum().value - of.center), of.likely);
}

// T2: of chains of so many roundings, whatever the data; and less depth than there is, is passed.
TEST(DepthBound, HoldsForBlocks) {
  for (const std::string& kind : kinds_of_data()) {
    const Products p = drawn_products(kind, 4096, 2);
    DeclaredArithmetic declared;
    declared.sum_depth = 512 + 7;  // 8 chains, and 7 additions of them
    const Number of = sum_of(p).value(declared);
    EXPECT_LT(of.worst, 0.3 * sum_of(p).value({}).worst) << kind;
    float sum = 0.0F;
    for (std::ptrdiff_t k = 0; k < 8; ++k)
      sum += chain_of({p.begin() + 512 * k, p.begin() + 512 * (k + 1)}, false);
    EXPECT_LE(std::abs(static_cast<double>(sum) - of.center), of.worst) << kind;
  }
  DeclaredArithmetic shallow;
  shallow.sum_depth = 100;
  const Products p = drawn_products("constant", 4096, 1);
  const Number of = sum_of(p).value(shallow);
  EXPECT_GT(std::abs(static_cast<double>(chain_of(p, false)) - of.center), of.worst);
}

// Layouts say how sums are cut: that makes something likely, and rejects nothing.
TEST(DepthBound, OfLayoutsIsLikelyAlone) {
  const Sum sum = sum_of(drawn_products("gauss", 4096, 2)).sum();
  const Number plain = bound(sum, {}), cut = bound(sum, {}, {512 + 7, false});
  EXPECT_EQ(cut.worst, plain.worst);
  EXPECT_LT(cut.likely, plain.likely);
  EXPECT_LT(bound(sum, {}, {512 + 7, true}).worst, plain.worst);
}

// T6: sums of neighbours alone; of others it is no bound.
TEST(NaturalOrder, HoldsForSumsOfNeighbours) {
  DeclaredArithmetic natural;
  natural.order = Order::natural;
  for (const std::string& kind : kinds_of_data())
    for (const std::size_t n : kLengths)
      for (unsigned seed = 0; seed < 4; ++seed) {
        const Products p = drawn_products(kind, n, seed);
        const Number of = sum_of(p).value(natural);
        EXPECT_LE(of.worst, sum_of(p).value({}).worst * (1 + 0x1p-40));
        for (const double sum : natural_sums(p)) {
          EXPECT_LE(std::abs(sum - of.center), of.worst) << kind << " " << n;
          EXPECT_LE(std::abs(sum - of.center), audited(p, of)) << kind << " " << n;
        }
      }
  const Products p = drawn_products("gauss", 4096, 1);
  EXPECT_LT(sum_of(p).value(natural).worst, 0.2 * sum_of(p).value({}).worst);
  double most = 0.0;
  for (unsigned seed = 0; seed < 8; ++seed) {
    const Products hostile = drawn_products("cancelling", 65536, seed);
    const Number of = sum_of(hostile).value(natural);
    for (const double sum : permuted_sums(hostile, seed))
      most = std::max(most, std::abs(sum - of.center) / of.likely);
  }
  EXPECT_GT(most, 1.0);
}

TEST(NaturalOrder, OfLanesHoldsForThem) {
  DeclaredArithmetic lanes;
  lanes.order = Order::lanes;
  lanes.lanes = 16;
  for (const std::string& kind : kinds_of_data()) {
    const Products p = drawn_products(kind, 4096, 1);
    const Number of = sum_of(p).value(lanes);
    std::vector<Products> each(16);
    for (std::size_t k = 0; k < p.size(); ++k) each[k % 16].push_back(p[k]);
    std::vector<float> sums;
    for (const Products& lane : each) sums.push_back(chain_of(lane, true));
    for (std::size_t half = 8; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    EXPECT_LE(std::abs(static_cast<double>(sums[0]) - of.center), of.worst) << kind;
  }
}

// T7: adders that cut off. Declared, their bound holds; undeclared, an emulation says which.
TEST(Truncation, IsBoundedWhereDeclaredAndExplainedWhereNot) {
  struct Core {
    const char* declaration;
    Adding adding;
  };
  for (const Core& core : {Core{"adding=v100", {4, 0}}, Core{"adding=a100", {8, 1}},
                           Core{"adding=h100", {16, 2}}, Core{"adding=truncating:32,2", {32, 2}}})
    for (const std::string& kind : kinds_of_data()) {
      const Products p = drawn_products(kind, 4096, 2);
      DeclaredArithmetic declared;
      declared.adding = core.adding;
      const Number of = sum_of(p).value(declared), nearest = sum_of(p).value({});
      EXPECT_EQ(of.likely, of.worst);
      double sum = 0.0;
      for (const Emulation& e : emulations(p))
        if (e.declaration == core.declaration) sum = e.deviation + of.center;
      EXPECT_LE(std::abs(sum - of.center), of.worst) << core.declaration << " " << kind;
      if (std::abs(sum - nearest.center) <= audited(p, nearest)) continue;
      const auto explained = explained_by(p, sum - of.center);
      ASSERT_TRUE(explained) << core.declaration << " " << kind;
      EXPECT_FALSE(explained->declaration.empty()) << core.declaration << " " << kind;
    }
}

TEST(Truncation, OfOneSignIsNotWithinTheLikelyBound) {
  const Products p = drawn_products("positive", 16384, 2);
  const Number of = sum_of(p).value({});
  for (const Emulation& e : emulations(p))
    if (e.declaration == "adding=v100") {
      EXPECT_GT(std::abs(e.deviation), audited(p, of));
      EXPECT_TRUE(explained_by(p, e.deviation));
      EXPECT_FALSE(explained_by(p, -e.deviation)) << "nothing adds too much";
    }
}

// What no way of adding comes to is not explained.
TEST(Emulation, ExplainsNoFault) {
  const Products p = drawn_products("gauss", 4096, 3);
  const double worst = sum_of(p).value({}).likely;
  EXPECT_FALSE(explained_by(p, 4 * worst));
  EXPECT_FALSE(explained_by(p, -4 * worst));
  for (const Emulation& e : emulations(p)) {
    const auto own = explained_by(p, e.deviation);
    EXPECT_TRUE(own || e.deviation == 0) << e.words;
  }
}

// Factors that are known to within a radius, folded constants and wires widen both radii.
TEST(SumBound, CountsWhatIsDeclared) {
  const Products p = drawn_products("gauss", 64, 1);
  const Number plain = sum_of(p).value({});
  const double size = sum_of(p).sum().size;
  DeclaredArithmetic folded;
  folded.folded = 3;
  EXPECT_GE(sum_of(p).value(folded).worst, plain.worst + 3 * 0x1p-24 * size);
  DeclaredArithmetic wire;
  wire.wire_roundings = 2;
  EXPECT_GE(sum_of(p).value(wire).likely, plain.likely + 2 * 0x1p-8 * size);
  IntervalSum open;
  for (const auto& [a, b] : p) open.add({a, 1e-3, 1e-4}, {b, 0.0, 0.0});
  double of_factors = 0.0;
  for (const auto& [a, b] : p) of_factors += std::abs(b);
  EXPECT_GE(open.value({}).worst, 1e-3 * of_factors);
  EXPECT_GE(open.value({}).likely, 1e-4 * of_factors);
  EXPECT_LT(open.value({}).likely, 1e-3 * of_factors);
  // Factors that are off as far as they may be, and what knows nothing of it.
  const double off = open.value({}).center + 1e-3 * of_factors;
  EXPECT_LE(std::abs(off - open.value({}).center), open.value({}).worst);
  EXPECT_GT(std::abs(off - plain.center), plain.worst);
}

// A factor that takes a constant in is rounded to the format that it is kept in.
TEST(SumBound, OfFoldedFactorsGoesByTheFormatOfTheValues) {
  for (unsigned seed = 0; seed < 40; ++seed)
    for (const NumberFormat values : {NumberFormat::f32, NumberFormat::bf16, NumberFormat::f16}) {
      const Products p = drawn_products(seed % 2 == 0 ? "gauss" : "positive", 64, seed);
      // By 3.1 and 1/sqrt(8), as if the sum were scaled back.
      Products by_large = p, folded = p;
      for (auto& [a, b] : by_large) b = nearest(3.1 * b, values) / 3.1;
      const double scale = 0.35355339F;
      for (auto& [a, b] : folded) b = nearest(scale * b, values);
      DeclaredArithmetic by;
      by.values = values;
      by.folded = 1;
      const Number of = sum_of(p).value(by);
      EXPECT_LE(std::abs(sum_of(by_large).sum().value - of.center), of.worst);
      for (const double sum : all_sums(folded, seed))
        EXPECT_LE(std::abs(sum - scale * of.center), scale * of.worst);
      EXPECT_LE(of.worst,
                2 * (unit_of(values) + 64 * unit_of(NumberFormat::f32)) * sum_of(p).sum().size);
    }
}

// Partial sums of eight chips that are sent as bf16, once or round a ring.
TEST(SumBound, HoldsForWiresOfBf16) {
  for (const int hops : {1, 7})
    for (unsigned seed = 0; seed < 500; ++seed) {
      const Products p = drawn_products("gauss", 64, seed);
      float sum = 0.0F;
      for (std::ptrdiff_t chip = 0; chip < 8; ++chip) {
        const float part = chain_of({p.begin() + 8 * chip, p.begin() + 8 * chip + 8}, true);
        // The first hop of a ring rounds nothing.
        sum = hops == 1 ? sum + round_to_bf16(part) : round_to_bf16(sum) + part;
      }
      DeclaredArithmetic wire;
      wire.wire_roundings = hops;
      const Number of = sum_of(p).value(wire);
      EXPECT_LE(std::abs(static_cast<double>(sum) - of.center), of.worst) << hops << " " << seed;
    }
}

// An f32 operand is no f64 one.
TEST(SumBound, OfF64HoldsForF64) {
  std::mt19937 random(6);
  std::normal_distribution<double> normal;
  const DeclaredArithmetic f64{.values = NumberFormat::f64,
                               .sums = NumberFormat::f64,
                               .operations = Arithmetic::of(NumberFormat::f64)};
  for (int trial = 0; trial < 500; ++trial) {
    IntervalSum bound;
    double sum = 0.0, rounded = 0.0;
    for (int k = 0; k < 200; ++k) {
      const double a = normal(random), b = normal(random);
      bound.add(a, b);
      sum += a * b;
      rounded += static_cast<double>(static_cast<float>(a)) * b;
    }
    const Number of = bound.value(f64);
    EXPECT_LE(std::abs(sum - of.center), of.worst);
    EXPECT_GT(std::abs(rounded - of.center), of.worst);
  }
}

// Of 32 products all are counted: each addition loses all but half a unit of its term.
TEST(SumBound, CountsEveryProduct) {
  Products p(32, {1.0, static_cast<double>(0x1.ffffcp-25F)});
  p[0] = {1.0 + 0x1p-12, 1.0 + 0x1p-12};
  const Number of = sum_of(p).value({});
  const double error = std::abs(static_cast<double>(chain_of(p, true)) - of.center);
  EXPECT_LE(error, of.worst);
  EXPECT_GT(error, of.worst / DeclaredArithmetic().growth(32) * DeclaredArithmetic().growth(2));
}

TEST(SumBound, OfOneProductIsItsOwnRoundingAlone) {
  IntervalSum one;
  one.add(0.1, 0.3);
  EXPECT_LT(one.value({}).worst, 0x1p-50);
  IntervalSum none;
  EXPECT_EQ(none.value({}).worst, 0.0);
  EXPECT_EQ(none.value({}).center, 0.0);
}

TEST(SumBound, OfWhatIsNoNumberIsNone) {
  for (const double bad : {static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    IntervalSum sum;
    sum.add(1.0, 2.0);
    sum.add(bad, 1.0);
    const Interval of = sum.value({}).interval();
    EXPECT_EQ(of.low, -kInfinity);
    EXPECT_EQ(of.high, kInfinity);
  }
}

}  // namespace
}  // namespace shardproof::bounds
