// Products by limbs against the wide sum, element by element, on kind and on hostile data, in every
// form of the operands and on any number of threads.
#include "oracle/numeric/contract.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "oracle/numeric/each.h"
#include "oracle/numeric/exact_sum.h"
#include "oracle/numeric/limbs.h"
#include "tests/bits.h"

namespace shardproof::oracle {
namespace {

using std::size_t;

/// What a vector's elements are drawn from.
enum class Operands {
  zeros,
  integers,
  weights,
  activations,
  residuals,
  spread,
  subnormal,
  large,
  patterns
};
constexpr Operands kOperands[] = {Operands::zeros,       Operands::integers,  Operands::weights,
                                  Operands::activations, Operands::residuals, Operands::spread,
                                  Operands::subnormal,   Operands::large,     Operands::patterns};

class DrawnNumbers {
 public:
  explicit DrawnNumbers(std::uint64_t seed) : random_(seed) {}

  float draw(Operands kind) {
    switch (kind) {
      case Operands::zeros:
        return sign() * 0.0F;
      case Operands::integers:
        return sign() * static_cast<float>(below(4));
      case Operands::weights:  // as the generator's: up to 24 bits, one power of two
        return sign() * std::ldexp(static_cast<float>(below(1 << 24)), -28);
      case Operands::activations:  // 24 bits each, about 40 together
        return sign() * std::ldexp(static_cast<float>((1 << 23) + below(1 << 23)), power(-34, -20));
      case Operands::residuals:  // and 46
        return sign() * std::ldexp(static_cast<float>((1 << 23) + below(1 << 23)), power(-42, -20));
      case Operands::spread:  // up to 62 bits together, and more
        return sign() * std::ldexp(static_cast<float>(1 + below(1 << 24)), power(-45, -5));
      case Operands::subnormal:
        return sign() * std::bit_cast<float>(static_cast<std::uint32_t>(below(1 << 23)));
      case Operands::large:
        return sign() * std::ldexp(static_cast<float>((1 << 23) + below(1 << 23)), power(95, 104));
      case Operands::patterns:
        for (;;)
          if (const float v = std::bit_cast<float>(static_cast<std::uint32_t>(random_()));
              std::isfinite(v))
            return v;
    }
    return 0.0F;
  }

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }

 private:
  int power(int low, int high) { return low + below(high - low + 1); }
  float sign() { return random_() % 2 == 0 ? 1.0F : -1.0F; }

  std::mt19937_64 random_;
};

/// Vectors of one length, one after the other; the last third of each cancels the first, perhaps.
std::vector<float> drawn(DrawnNumbers& numbers, size_t count, size_t length,
                         const std::vector<Operands>& kinds, bool cancel) {
  std::vector<float> all;
  for (size_t i = 0; i < count; ++i) {
    const Operands kind = kinds[i % kinds.size()];
    for (size_t k = 0; k < length; ++k)
      all.push_back(cancel && k >= length - length / 3 ? -all[i * length + length - 1 - k]
                                                       : numbers.draw(kind));
  }
  return all;
}

std::vector<float> transposed(const std::vector<float>& rows, size_t count) {
  std::vector<float> columns(rows.size());
  const size_t length = count == 0 ? 0 : rows.size() / count;
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < length; ++k) columns[k * count + i] = rows[i * length + k];
  return columns;
}

/// As Vectors sees them: as rows or as columns of a matrix.
Vectors seen(const std::vector<float>& rows, const std::vector<float>& columns, size_t count,
             bool as_rows) {
  return as_rows ? Vectors::rows_of(rows, count) : Vectors::columns_of(columns, count);
}

void require_all_methods_equal(const Vectors& rows, const Vectors& columns, int threads) {
  const std::vector<float> product = contract(rows, columns, threads);
  RC_ASSERT(product.size() == rows.count() * columns.count());
  for (size_t i = 0; i < rows.count(); ++i)
    for (size_t j = 0; j < columns.count(); ++j) {
      const std::uint32_t expected = bits(wide_dot(rows, i, columns, j));
      RC_ASSERT(bits(product[i * columns.count() + j]) == expected);
      if (const auto fixed = fixed_point_dot(rows, i, columns, j))
        RC_ASSERT(bits(*fixed) == expected);
    }
}

int any(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}

std::vector<Operands> any_kinds(bool mixed) {
  std::vector<Operands> kinds{
      *rc::gen::elementOf(std::vector<Operands>(std::begin(kOperands), std::end(kOperands)))};
  while (mixed && kinds.size() < 3)
    kinds.push_back(
        *rc::gen::elementOf(std::vector<Operands>(std::begin(kOperands), std::end(kOperands))));
  return kinds;
}

RC_GTEST_PROP(Contract, EveryMethodGivesTheSameBits, ()) {
  DrawnNumbers numbers(*rc::gen::arbitrary<std::uint64_t>());
  const auto m = static_cast<size_t>(any(0, 15)), n = static_cast<size_t>(any(0, 20));
  // Short, odd, about a block of terms and about the terms that are packed together.
  const auto length = static_cast<size_t>(*rc::gen::element(
      0, 1, 2, any(3, 40), any(60, 70), any(120, 140), any(250, 270), any(500, 800)));
  const std::vector<Operands> of_rows = any_kinds(any(0, 2) == 0),
                              of_columns = any_kinds(any(0, 2) == 0);
  const std::vector<float> a = drawn(numbers, m, length, of_rows, any(0, 2) == 0);
  const std::vector<float> b = drawn(numbers, n, length, of_columns, any(0, 2) == 0);
  const std::vector<float> at = transposed(a, m), bt = transposed(b, n);
  const Vectors rows = seen(a, at, m, any(0, 1) == 0), columns = seen(b, bt, n, any(0, 1) == 0);
  if (m == 0 || n == 0) {  // then they do not say how long they are
    RC_ASSERT(m > 0 || rows.count() == 0);
    return;
  }
  RC_TAG(choose_limbs(rows, columns).block < length ? "split" : "at once");
  require_all_methods_equal(rows, columns, any(1, 3));
}

/// A product of more rows than a block has and more columns than a strip. Its terms are one block,
/// some or many, and the vectors of a panel have one limb, or several and one.
struct Large {
  static constexpr size_t kM = 131, kN = 76;
  size_t length;
  std::vector<Operands> of_rows, of_columns;
  bool split;
};

TEST(ContractExamples, LargeProductsOnAnyNumberOfThreads) {
  const Large products[] = {
      {300, {Operands::activations, Operands::weights}, {Operands::weights}, false},
      {700,
       {Operands::residuals, Operands::weights},
       {Operands::weights, Operands::integers},
       true},
      {300,
       {Operands::activations},
       {Operands::activations, Operands::weights, Operands::zeros},
       false},
  };
  DrawnNumbers numbers(7);
  for (const Large& of : products) {
    const std::vector<float> a = drawn(numbers, Large::kM, of.length, of.of_rows, false);
    const std::vector<float> b =
        transposed(drawn(numbers, Large::kN, of.length, of.of_columns, false), Large::kN);
    const Vectors rows = Vectors::rows_of(a, Large::kM);
    const Vectors columns = Vectors::columns_of(b, Large::kN);
    EXPECT_EQ(choose_limbs(rows, columns).block < of.length, of.split) << of.length;
    const std::vector<float> alone = contract(rows, columns);
    for (size_t i = 0; i < Large::kM; i += 5)
      for (size_t j = 0; j < Large::kN; ++j)
        ASSERT_EQ(bits(alone[i * Large::kN + j]), bits(wide_dot(rows, i, columns, j)))
            << of.length << ' ' << i << ' ' << j;
    for (const int threads : {2, 3, 7}) EXPECT_EQ(contract(rows, columns, threads), alone);
  }
}

/// Integers of which every limb but the highest is as large as it may be, and products that add up
/// in one direction to the largest sum that f64 must hold; the last term cancels all of it. One bit
/// more of a limb and the sum of low limbs is rounded.
TEST(ContractExamples, LimbsAtTheirLargest) {
  for (const int row_bits : {30, 38, 41, 45})
    for (const int column_bits : {8, 17, 22, 23}) {
      constexpr size_t kLength = 256;
      std::vector<float> x(kLength, 1.0F), y(kLength, 1.0F);
      x[0] = std::ldexp(1.0F, row_bits - 1), y[0] = 0.0F;
      y[1] = std::ldexp(1.0F, column_bits) - 1, x[1] = 0.0F;
      const Limbs limbs = choose_limbs(Vectors::rows_of(x, 1), Vectors::rows_of(y, 1));
      if (limbs.row_width > 24 || limbs.column_width > 24 || limbs.row_width >= row_bits) continue;
      const float half = std::ldexp(1.0F, limbs.row_width - 1);
      const float column =
          std::min(std::ldexp(1.0F, limbs.column_width - 1), std::ldexp(1.0F, column_bits)) - 1;
      // Low limbs of half − 1, and high ones of 0 and −1 in turns.
      for (size_t k = 2; k < kLength - 1; ++k) {
        x[k] = k % 2 == 0 ? half - 1 : -half - 1;
        y[k] = column;
      }
      // 127 times half − 1 and 126 times −half − 1: their opposite.
      x[kLength - 1] = 253 - half, y[kLength - 1] = column;
      const Vectors rows = Vectors::rows_of(x, 1), columns = Vectors::rows_of(y, 1);
      EXPECT_EQ(bits(contract(rows, columns).at(0)), bits(wide_dot(rows, 0, columns, 0)))
          << row_bits << ' ' << column_bits;
      EXPECT_EQ(bits(contract(columns, rows).at(0)), bits(wide_dot(rows, 0, columns, 0)))
          << row_bits << ' ' << column_bits;
    }
}

/// In a panel the first column alone needs several limbs, then the last alone; all terms but a few
/// bits of each sum cancel, so that a bit that f64 lost shows in f32.
TEST(ContractExamples, EachColumnOfAPanelHasTheLimbsThatItNeeds) {
  constexpr size_t kColumns = 8;
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    for (const size_t wide : {size_t{0}, kColumns - 1}) {
      DrawnNumbers numbers(seed);
      const size_t half = 40 + static_cast<size_t>(numbers.below(9));
      std::vector<Operands> of_columns(kColumns, Operands::integers);
      of_columns[wide] = Operands::residuals;
      std::vector<float> row = drawn(numbers, 1, half, {Operands::activations}, false);
      std::vector<float> once = drawn(numbers, kColumns, half, of_columns, false), all;
      for (size_t j = 0; j < kColumns; ++j) {  // each term, then its opposite
        all.insert(all.end(), once.begin() + static_cast<std::ptrdiff_t>(j * half),
                   once.begin() + static_cast<std::ptrdiff_t>((j + 1) * half));
        for (size_t k = 0; k < half; ++k) all.push_back(-once[j * half + k]);
        all.push_back(j == wide ? std::ldexp(1.0F, -30) : 1.0F);
      }
      row.insert(row.end(), row.begin(), row.end());
      row.push_back(std::ldexp(1.0F, -20));
      constexpr size_t kRows = 12;
      std::vector<float> same;
      for (size_t i = 0; i < kRows; ++i) same.insert(same.end(), row.begin(), row.end());
      const Vectors rows = Vectors::rows_of(same, kRows);
      const Vectors columns = Vectors::rows_of(all, kColumns);
      const std::vector<float> product = contract(rows, columns);
      for (size_t i = 0; i < kRows; ++i)
        for (size_t j = 0; j < kColumns; ++j)
          ASSERT_EQ(bits(product[i * kColumns + j]), bits(wide_dot(rows, i, columns, j)))
              << seed << ' ' << i << ' ' << j;
    }
}

/// What the proof of docs/numerics.md section 7 asks of the widths, whatever the vectors are.
RC_GTEST_PROP(Limbs, LeaveRoomForEverySumOfABlock, ()) {
  DrawnNumbers numbers(*rc::gen::arbitrary<std::uint64_t>());
  const auto length = static_cast<size_t>(any(1, 3000));
  const std::vector<float> a = drawn(numbers, 3, length, any_kinds(true), false);
  const std::vector<float> b = drawn(numbers, 3, length, any_kinds(true), false);
  const Vectors rows = Vectors::rows_of(a, 3), columns = Vectors::rows_of(b, 3);
  const Limbs limbs = choose_limbs(rows, columns);
  RC_ASSERT(std::has_single_bit(limbs.block));
  RC_ASSERT(limbs.row_width + limbs.column_width + std::countr_zero(limbs.block) <= 55);
  for (size_t i = 0; i < 3; ++i) {
    if (!rows.scale(i).fits()) continue;
    const int count = limb_count(rows.scale(i).bits, limbs.row_width);
    RC_ASSERT(count * limbs.row_width > rows.scale(i).bits);
    RC_ASSERT((count - 1) * limbs.row_width <= rows.scale(i).bits);
  }
}

RC_GTEST_PROP(Scales, AreTheTightestOfTheirFloats, ()) {
  DrawnNumbers numbers(*rc::gen::arbitrary<std::uint64_t>());
  const auto length = static_cast<size_t>(any(0, 40));
  const std::vector<float> v = drawn(numbers, 1, length, any_kinds(false), false);
  const Scale scale = scale_of(v);
  bool odd = false, top = false;
  for (const float f : v) {
    const double integer = std::ldexp(static_cast<double>(f), -scale.exponent);
    RC_ASSERT(integer == std::trunc(integer));
    RC_ASSERT(std::abs(integer) < std::ldexp(1.0, scale.bits));
    odd = odd || std::abs(std::fmod(integer, 2.0)) == 1.0;
    top = top || std::abs(integer) >= std::ldexp(0.5, scale.bits);
  }
  // Zeros alone have no bits.
  RC_ASSERT(odd == (scale.bits > 0) && top == (scale.bits > 0));
}

RC_GTEST_PROP(Sums, OfOneVectorAreTheWideSum, ()) {
  DrawnNumbers numbers(*rc::gen::arbitrary<std::uint64_t>());
  const auto length = static_cast<size_t>(any(0, 60));
  const std::vector<float> x = drawn(numbers, 1, length, any_kinds(false), any(0, 1) == 0);
  const std::vector<float> y = drawn(numbers, 1, length, any_kinds(false), false);
  Sum sum, products;
  for (size_t k = 0; k < length; ++k) sum.add(x[k]), products.add(x[k], y[k]);
  RC_ASSERT(bits(sum_of(x)) == bits(sum.value()));
  RC_ASSERT(bits(sum_of_products(x, y)) == bits(products.value()));
}

TEST(Each, CallsEveryIndexOnce) {
  for (const int threads : {1, 2, 7})
    for (const size_t n : {size_t{0}, size_t{1}, size_t{2}, size_t{100}}) {
      std::vector<std::atomic<int>> calls(n);
      each(n, threads, [&](size_t i) { ++calls[i]; });
      for (const auto& count : calls) EXPECT_EQ(count, 1);
      std::vector<std::atomic<int>> of_rows(n);
      each_row(n, 5000, threads, [&](size_t i) { ++of_rows[i]; });
      for (const auto& count : of_rows) EXPECT_EQ(count, 1);
    }
}

TEST(Each, RethrowsWhatTheLowestIndexThrew) {
  for (const int threads : {1, 3}) {
    std::string what;
    try {
      each(50, threads, [](size_t i) {
        if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "7");
  }
}

}  // namespace
}  // namespace shardproof::oracle
