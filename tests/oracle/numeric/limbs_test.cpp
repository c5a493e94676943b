// How products are cut into limbs: as cheaply as whole sums of f64 allow.
#include "oracle/numeric/limbs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace shardproof::oracle {
namespace {

/// A vector whose integers have this many bits: 1, a power of two, and zeros.
std::vector<float> of_bits(int bits, std::size_t length) {
  std::vector<float> v(length, 0.0F);
  v[0] = std::ldexp(1.0F, bits - 1);
  if (length > 1) v[1] = 1.0F;
  return v;
}

struct Cut {
  int row_limbs, column_limbs;
  Limbs limbs;
};

/// How a row and a column of these bits are cut; `beside`: the bits of another column.
Cut cut(int row_bits, int column_bits, std::size_t length, int beside = 1) {
  const std::vector<float> row = of_bits(row_bits, length);
  std::vector<float> both = of_bits(column_bits, length);
  const std::vector<float> other = of_bits(beside, length);
  both.insert(both.end(), other.begin(), other.end());
  const Vectors rows = Vectors::rows_of(row, 1), columns = Vectors::rows_of(both, 2);
  const Limbs limbs = choose_limbs(rows, columns);
  return {PackedRows(rows, 0, 1, limbs).limbs(0), Panel(columns, 0, limbs).limbs(), limbs};
}

// Pairs of limbs are what a product costs: of 64 terms, which take 6 bits, the two widths have 49.
TEST(Limbs, AreAsFewPairsAsFitAnF64) {
  const auto pairs = [](int row_bits, int column_bits, std::size_t length) {
    const Cut of = cut(row_bits, column_bits, length);
    return of.row_limbs * of.column_limbs;
  };
  EXPECT_EQ(pairs(8, 8, 64), 1);
  EXPECT_EQ(pairs(23, 24, 64), 1) << "of 24 and 25 bits with their signs";
  EXPECT_EQ(pairs(24, 24, 64), 2);
  EXPECT_EQ(pairs(24, 24, 32), 1);
  EXPECT_EQ(pairs(46, 24, 64), 2);
  EXPECT_EQ(pairs(46, 46, 64), 4);
  EXPECT_EQ(pairs(62, 62, 64), 8);
}

TEST(Limbs, OfTheColumnWithTheMostBitsThatFit) {
  for (const int beside : {1, 24, 62}) {
    const Cut of = cut(24, 24, 64, beside), alone = cut(24, std::max(24, beside), 64);
    EXPECT_EQ(of.limbs.column_width, alone.limbs.column_width) << beside;
    EXPECT_EQ(of.column_limbs, alone.column_limbs) << beside;
  }
  // Of more than 62 bits it is summed in another way, and asks for no limbs.
  EXPECT_EQ(cut(24, 24, 64, 63).limbs.column_width, cut(24, 24, 64).limbs.column_width);
  EXPECT_EQ(cut(24, 24, 64, 63).column_limbs, cut(24, 24, 64).column_limbs);
}

// Whatever is cut, a block of products of limbs is at most 2^53 and has the value of the numbers.
TEST(Limbs, SumWithoutRounding) {
  for (const std::size_t length : {1U, 2U, 63U, 1000U, 5000U})
    for (int row_bits = 1; row_bits <= 62; row_bits += 7)
      for (int column_bits = 1; column_bits <= 62; column_bits += 5) {
        if (length == 1 && (row_bits > 1 || column_bits > 1)) continue;
        const Limbs of = cut(row_bits, column_bits, length).limbs;
        const double most =
            std::ldexp(static_cast<double>(of.block), of.row_width - 1 + of.column_width - 1);
        EXPECT_LE(most, 0x1p53) << row_bits << " " << column_bits << " " << length;
        EXPECT_EQ(of.block & (of.block - 1), 0U);
      }
}

}  // namespace
}  // namespace shardproof::oracle
