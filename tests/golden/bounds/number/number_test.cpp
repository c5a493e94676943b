#include "golden/bounds/number/number.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "golden/bounds/number/interval_tensor.h"

namespace shardproof::bounds {
namespace {

// A sum that becomes a value is rounded as the coarser of sums and of values that are not stored.
TEST(Number, ASumBecomesAValueInTheCoarserFormat) {
  DeclaredArithmetic coarse_sums, coarse_operations;
  coarse_sums.sums = NumberFormat::bf16;
  coarse_operations.operations = Arithmetic::of(NumberFormat::bf16);
  const Number sum{3.0, 0.25, 0.125};
  for (const DeclaredArithmetic& by : {coarse_sums, coarse_operations, DeclaredArithmetic()}) {
    const double unit = std::max(unit_of(by.sums), unit_of(by.unstored()));
    const Number value = as_value(sum, by);
    EXPECT_EQ(value.center, 3.0);
    EXPECT_GE(value.worst, 0.25 + 3.0 * unit);
    EXPECT_LE(value.worst, 0.25 + 3.0 * unit + 0x1p-100);
    EXPECT_EQ(value.worst - 0.25, value.likely - 0.125);
  }
  EXPECT_GE(as_value(sum, coarse_sums).worst, 0.25 + 3.0 * 0x1p-9);
}

// By its likely radius a number excludes what the worst case leaves open.
TEST(Number, OfATensorIsKnownToWithinItsLikelyRadius) {
  IntervalTensor x(Shape{2});
  x.set(0, Number{3.0, 0.5, 0.125});
  x.set(1, Number{1.0, kInfinity, kInfinity});
  const IntervalTensor likely = x.with_likely_radius();
  EXPECT_EQ(likely.center, x.center);
  EXPECT_GE(x.at(0).high, 3.5);
  EXPECT_GE(likely.at(0).high, 3.125);
  EXPECT_LT(likely.at(0).high, 3.2);
  EXPECT_EQ(likely.at(1).high, kInfinity);
}

TEST(Number, SumsThatOverflowAreInfinite) {
  const Operations by{DeclaredArithmetic()};
  const double inf = kInfinity;
  EXPECT_EQ(by.plus({inf, 0.0, 0.0}, {1.0, 0.5, 0.5}).worst, 0.0);
  EXPECT_EQ(by.plus({inf, inf, inf}, {1.0, 0.5, 0.5}).worst, inf);
  EXPECT_EQ(by.plus({inf, 1.0, 1.0}, {1.0, inf, inf}).worst, inf);
}

}  // namespace
}  // namespace shardproof::bounds
