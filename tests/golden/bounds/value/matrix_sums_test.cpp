// The sums of products with a matrix, column by column, against plain loops.
#include "golden/bounds/value/matrix_sums.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "weights/base/isa.h"

namespace shardproof::bounds {
namespace {

/// Rows of numbers that are known to within a radius, or exactly.
IntervalTensor drawn_rows(std::int64_t rows, std::int64_t width, std::mt19937& random) {
  std::normal_distribution<double> gauss;
  IntervalTensor x(Shape{rows, width});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double worst = random() % 3 == 0 ? 0.0 : std::abs(gauss(random));
    x.set(i, Number{gauss(random), worst, 0.25 * worst});
  }
  return x;
}

/// Expects the quantities that sum_bounds.h names, of the sum of products a·b in this order.
void expect_sum(const Sum& sum, const std::vector<std::pair<Number, double>>& products,
                SumsNeeded needed) {
  Sum plain;
  double high = 0.0, low = 0.0, exact = 0.0;
  for (const auto& [a, b] : products) {
    ++plain.count;
    exact += a.center * b;
    high = std::max(high, exact), low = std::min(low, exact);
    plain.size += (std::abs(a.center) + a.worst) * std::abs(b);
    plain.worst += a.worst * std::abs(b);
    plain.likely += a.likely * std::abs(b);
  }
  const double close = 1e-12 * (1.0 + plain.size);
  EXPECT_EQ(sum.count, plain.count);
  EXPECT_NEAR(sum.value, exact, close);
  EXPECT_NEAR(sum.size, plain.size, close);
  if (needed.range || needed.twice) {
    EXPECT_NEAR(sum.range, high - low, close);
  }
  EXPECT_NEAR(sum.worst, plain.worst, close);
  EXPECT_NEAR(sum.likely, plain.likely, close);
}

/// Two terms, rows in an order of their own, and the chip of each product.
struct Drawn {
  std::vector<std::size_t> widths, rows{2, 0, 2, 1, 1};
  std::size_t columns;
  std::vector<IntervalTensor> x;
  std::vector<std::vector<float>> matrices;
  std::vector<MatrixTerm> terms;
  int chips;

  Drawn(std::vector<std::size_t> of, std::size_t width, bool table, int count, bool exact,
        std::mt19937& random)
      : widths(std::move(of)), columns(width), chips(count) {
    std::normal_distribution<float> gauss;
    for (const std::size_t w : widths) {
      x.push_back(drawn_rows(3, static_cast<std::int64_t>(w), random));
      if (exact) x.back().radius.assign(x.back().size(), 0.0), x.back().likely = x.back().radius;
      matrices.emplace_back(w * columns);
      for (float& v : matrices.back()) v = gauss(random);
    }
    for (std::size_t t = 0; t < widths.size(); ++t) {
      terms.push_back({&x[t], &matrices[t], widths[t], table});
      for (std::size_t k = 0; k < widths[t] && chips > 1; ++k)
        terms[t].chip.push_back(static_cast<int>((k / 3 + t) % static_cast<std::size_t>(chips)));
    }
  }
  std::vector<std::pair<Number, double>> products(std::size_t row, std::size_t c, int chip) const {
    std::vector<std::pair<Number, double>> of;
    for (std::size_t t = 0; t < widths.size(); ++t)
      for (std::size_t k = 0; k < widths[t]; ++k)
        if (chips == 1 || terms[t].chip[k] == chip)
          of.emplace_back(x[t].number(rows[row] * widths[t] + k),
                          matrices[t][terms[t].table ? c * widths[t] + k : k * columns + c]);
    return of;
  }
  /// Returns the sums of each row and column.
  std::vector<Sums> sums(SumsNeeded needed, Threads& threads) const {
    std::vector<Sums> seen(rows.size() * columns);
    each_sum(terms, rows, columns, chips, needed, threads,
             [&](std::size_t row, std::size_t first, std::span<const Sums> of) {
               for (std::size_t c = 0; c < of.size(); ++c) seen[row * columns + first + c] = of[c];
             });
    return seen;
  }
};

TEST(MatrixSums, AreThoseOfPlainLoops) {
  std::mt19937 random(1);
  Threads threads(2);
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (!has_isa(isa)) continue;
    const ForcedIsa forced(isa);
    for (const std::size_t columns : {1U, 15U, 37U, 65U})
      for (const bool table : {false, true})
        for (const int chips : {1, 3})
          for (const bool exact : {false, true})
            for (const SumsNeeded needed :
                 {SumsNeeded{true, true}, SumsNeeded{true, false}, SumsNeeded{false, false}}) {
              // Of a table few rows are read at a time.
              const Drawn of({columns == 37 ? 70U : 7U, 4}, columns, table, chips, exact, random);
              const std::vector<Sums> sums = of.sums(needed, threads);
              for (std::size_t i = 0; i < sums.size(); ++i) {
                ASSERT_EQ(sums[i].size(), static_cast<std::size_t>(chips));
                for (int chip = 0; chip < chips; ++chip)
                  expect_sum(sums[i][static_cast<std::size_t>(chip)],
                             of.products(i / columns, i % columns, chip), needed);
              }
            }
  }
}

// What is added in f64 is no further from the sum to twice its digits than `error` says, whatever
// cancels, and in each instruction set the same bits.
TEST(MatrixSums, SayTheErrorOfTheirDigits) {
  std::mt19937 random(2);
  Threads threads(2);
  const Drawn of({1500, 260}, 20, false, 2, true, random);
  const std::vector<Sums> twice = of.sums({true, true}, threads);
  std::vector<std::vector<Sums>> by_isa;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (!has_isa(isa)) continue;
    const ForcedIsa forced(isa);
    by_isa.push_back(of.sums({true, false}, threads));
  }
  bool any = false;
  for (std::size_t i = 0; i < twice.size(); ++i)
    for (std::size_t chip = 0; chip < 2; ++chip) {
      EXPECT_EQ(twice[i][chip].error, 0.0);
      for (const std::vector<Sums>& sums : by_isa) {
        const Sum& sum = sums[i][chip];
        const double off = std::abs(sum.value - twice[i][chip].value);
        EXPECT_LE(off, sum.error);
        EXPECT_LT(sum.error, 0x1p-40 * sum.size);
        any = any || off > 0;
        EXPECT_EQ(sum.value, by_isa[0][i][chip].value);
        EXPECT_EQ(sum.range, by_isa[0][i][chip].range);
      }
    }
  EXPECT_TRUE(any);
}

// A declared order is judged by the range of its sums, and f64 sums by twice their digits.
TEST(MatrixSums, NeedWhatTheirDeclarationIsJudgedBy) {
  for (const Order order : {Order::any, Order::natural, Order::lanes})
    for (const NumberFormat sums : {NumberFormat::f32, NumberFormat::f64, NumberFormat::bf16}) {
      DeclaredArithmetic declared;
      declared.order = order, declared.sums = sums;
      const SumsNeeded needed = SumsNeeded::of(declared);
      EXPECT_EQ(needed.range, order != Order::any);
      EXPECT_EQ(needed.twice, sums == NumberFormat::f64);
    }
}

// One large product, and many each of which is half a unit in the last place of it: f64 sums lose
// all of these, and the bound of that is no wider than it has to be.
TEST(MatrixSums, SayNoMoreThanTheirDigitsLose) {
  Threads threads(1);
  for (const std::size_t n : {2U, 9U, 100U, 700U})
    for (const int chips : {1, 2})
      for (const bool radii : {false, true}) {
        IntervalTensor x(Shape{1, static_cast<std::int64_t>(n)});
        std::vector<int> chip;
        for (std::size_t k = 0; k < n; ++k) {
          const bool first = k < static_cast<std::size_t>(chips);
          x.set(k, Number{first ? 1.0 : 0x1p-53, radii ? 0x1p-80 : 0.0, 0.0});
          chip.push_back(static_cast<int>(k) % chips);
        }
        const std::vector<float> ones(n, 1.0F);
        const std::vector<MatrixTerm> terms{{&x, &ones, n, false, chip}};
        for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
          if (!has_isa(isa)) continue;
          const ForcedIsa forced(isa);
          Sums sums;
          each_sum(terms, {0}, 1, chips, {false, false}, threads,
                   [&](std::size_t, std::size_t, std::span<const Sums> of) { sums = of[0]; });
          double lost = 0.0;
          for (const Sum& sum : sums) {
            const auto count = static_cast<double>(sum.count);
            EXPECT_EQ(sum.value, 1.0);
            EXPECT_LE((count - 1) * 0x1p-53, sum.error);
            EXPECT_LE(sum.error, (count + 1) * 0x1p-53 * (1 + 0x1p-30));
            lost += (count - 1) * 0x1p-53;
          }
          const Sum all = total(sums);
          EXPECT_LE(lost, all.error);
          const Number bounded = bound(all, {});
          EXPECT_LE(lost, bounded.worst);
          EXPECT_LE(lost, bounded.likely);
        }
      }
}

/// Returns the sum of products in f64, each fused into the sum, in this order.
Sum fused(const std::vector<std::pair<Number, double>>& products) {
  Sum plain;
  double least = 0.0, most = 0.0;
  for (const auto& [a, b] : products) {
    ++plain.count;
    plain.value = std::fma(a.center, b, plain.value);
    plain.size = std::fma(std::abs(a.center) + a.worst, std::abs(b), plain.size);
    plain.worst = std::fma(a.worst, std::abs(b), plain.worst);
    plain.likely = std::fma(a.likely, std::abs(b), plain.likely);
    if (plain.value < least) least = plain.value;  // false for NaN
    if (plain.value > most) most = plain.value;
  }
  plain.range = most - least;
  return plain;
}

bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

// Blocks end anywhere: rows, columns, products and chips of any number, none among them; whatever
// is no number is as in a plain loop.
RC_GTEST_PROP(MatrixSums, OfAnyShapeAreThoseOfAPlainLoop, ()) {
  static Threads threads(2);
  std::mt19937 random(*rc::gen::arbitrary<unsigned>());
  const int chips = *rc::gen::element(1, 2, 64);
  const auto columns = *rc::gen::inRange<std::size_t>(1, 140);
  const bool exact = *rc::gen::arbitrary<bool>(), table = *rc::gen::arbitrary<bool>();
  std::vector<std::size_t> widths;
  for (int t = *rc::gen::inRange(1, 4); t > 0; --t)
    widths.push_back(*rc::gen::element<std::size_t>(0, 1, 5, 255, 256, 257, 300));
  Drawn of(widths, columns, table, chips, exact, random);
  of.rows.clear();
  for (int i = *rc::gen::inRange(1, 12); i > 0; --i) of.rows.push_back(random() % 3);
  // Some are infinite, NaN, or zeros of either sign.
  const std::vector<double> odd{NAN, HUGE_VAL, -HUGE_VAL, -0.0, 0.0};
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    const std::size_t t = random() % widths.size();
    if (widths[t] == 0) continue;
    const double number = odd[random() % odd.size()];
    if (random() % 2 == 0)
      of.x[t].center[random() % of.x[t].size()] = number;
    else
      of.matrices[t][random() % of.matrices[t].size()] = static_cast<float>(number);
  }
  std::vector<Isa> sets;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
    if (has_isa(isa)) sets.push_back(isa);
  const ForcedIsa forced(*rc::gen::elementOf(sets));
  const SumsNeeded needed{*rc::gen::arbitrary<bool>(), false};
  const std::vector<Sums> sums = of.sums(needed, threads);
  for (std::size_t i = 0; i < sums.size(); ++i)
    for (int chip = 0; chip < chips; ++chip) {
      const Sum& sum = sums[i][static_cast<std::size_t>(chip)];
      const Sum plain = fused(of.products(i / columns, i % columns, chip));
      RC_ASSERT(sum.count == plain.count);
      RC_ASSERT(same(sum.value, plain.value));
      RC_ASSERT(same(sum.size, plain.size));
      // Without radii none are added up, whatever infinite factor they have.
      const bool any = !exact || std::isfinite(plain.size);
      RC_ASSERT(!any || same(sum.worst, plain.worst));
      RC_ASSERT(!any || same(sum.likely, plain.likely));
      RC_ASSERT(!needed.range || same(sum.range, plain.range));
      RC_ASSERT(!std::isfinite(sum.size) || sum.error <= 0x1p-40 * sum.size);
      RC_ASSERT(std::isfinite(sum.size) || !std::isfinite(sum.error));
    }
}

TEST(MatrixSums, BoundsIncludeTheErrorOfTheirDigits) {
  Sum sum{4, 1.0, 3.0, 1.0, 0.0, 0.0};
  const Number before = bound(sum, {});
  sum.error = 0.25;
  const Number after = bound(sum, {});
  EXPECT_GE(after.worst, before.worst + 0.25);
  EXPECT_GE(after.likely, before.likely + 0.25);
  EXPECT_EQ(total({sum, sum}).error, 0.5);
}

// A total has each field of its terms, and of values what one f64 sum of them loses.
TEST(MatrixSums, TotalsAddUpEveryField) {
  const auto field = [](double Sum::*of) {
    Total all;
    for (const double v : {1.0, 2.0}) {
      Sum sum;
      sum.*of = v;
      all.add(sum);
    }
    return all.sum().*of;
  };
  for (double Sum::*const of :
       {&Sum::value, &Sum::size, &Sum::range, &Sum::worst, &Sum::likely, &Sum::error})
    EXPECT_EQ(field(of), 3.0);
  EXPECT_EQ(total({Sum{.count = 1}, Sum{.count = 2}}).count, 3);
  for (const double large : {0x1p60, -0x1p60})
    EXPECT_EQ(total({Sum{.value = 1.0}, Sum{.value = large}, Sum{.value = -large}}).value, 1.0);
}

}  // namespace
}  // namespace shardproof::bounds
