// Exact sums of f64 products against MPFR, which holds all of their 4,300 bits.
#include "oracle/numeric/wide_sum.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace shardproof::oracle {
namespace {

using Products = std::vector<std::pair<double, double>>;

double by_mpfr(const Products& products) {
  mpfr_t sum, product;
  mpfr_init2(sum, 4800);
  mpfr_init2(product, 110);
  mpfr_set_zero(sum, +1);
  for (const auto& [a, b] : products) {
    mpfr_set_d(product, a, MPFR_RNDN);
    mpfr_mul_d(product, product, b, MPFR_RNDN);
    mpfr_add(sum, sum, product, MPFR_RNDN);
  }
  const double nearest = mpfr_zero_p(sum) != 0 ? 0.0 : mpfr_get_d(sum, MPFR_RNDN);
  mpfr_clear(sum);
  mpfr_clear(product);
  return nearest;
}

double by_wide_sum(const Products& products) {
  WideSum sum;
  for (const auto& [a, b] : products) sum.add(a, b);
  return sum.value();
}

void expect_same(const Products& products) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(by_wide_sum(products)),
            std::bit_cast<std::uint64_t>(by_mpfr(products)))
      << by_wide_sum(products) << " and " << by_mpfr(products);
}

TEST(WideSumOfProducts, IsRoundedOnce) {
  const double one = 1.0, up = 0x1p-52, half = 0x1p-53, less = 0x1p-200;
  expect_same({});
  expect_same({{one, one}, {half, one}});                // a tie, to even
  expect_same({{one, one}, {half, one}, {less, one}});   // just above it
  expect_same({{one, one}, {half, one}, {less, -1.0}});  // just below
  expect_same({{one + up, one}, {half, one}});           // a tie, to even: up
  expect_same({{-1.0, one}, {half, -1.0}, {less, -1.0}});
  expect_same({{0x1p1023, 1.0}, {0x1p1023, 1.0}, {0x1p1023, -1.0}});
  expect_same({{0x1p-1022, 0x1p-1022}});  // far below the least f64
  expect_same({{0x1p-537, 0x1p-537}, {0x1p-537, 0x1p-538}});
  expect_same({{0x1p-1074, 1.0}, {0x1p-1074, 0.5}});  // a tie among subnormals
  // Just above a tie of subnormals, by less than the last of 53 bits.
  expect_same({{0x1p-1074, 0.5}, {0x1p-1074, 0x1p-60}});
  expect_same({{0x1p-1074, 2.5}, {0x1p-1074, 0x1p-60}});
  expect_same({{0x1p-1022, 1.0}, {0x1p-1074, -0.5}});
  expect_same({{3e300, -2.0}, {3e300, 2.0}, {1e-300, 1e-10}});
  EXPECT_EQ(std::signbit(by_wide_sum({{1.0, 1.0}, {-1.0, 1.0}})), false);
}

TEST(WideSumOfProducts, OfAnyNumbers) {
  std::mt19937_64 bits(7);
  for (int round = 0; round < 3000; ++round) {
    Products products;
    const int spread = 1 << (bits() % 11);
    for (std::uint64_t n = 1 + bits() % 20; n > 0; --n) {
      const auto number = [&] {
        const auto exponent = static_cast<int>(bits() % static_cast<unsigned>(spread)) - spread / 2;
        const auto integer = static_cast<double>(bits() >> 11);
        return std::ldexp(bits() % 2 == 0 ? integer : -integer, exponent - 53);
      };
      products.emplace_back(number(), number());
    }
    for (std::uint64_t n = bits() % 4; n > 0; --n)  // terms that cancel
      products.emplace_back(-products[n % products.size()].first,
                            products[n % products.size()].second);
    expect_same(products);
  }
}

TEST(WideSumOfProducts, OfWhatIsNotFiniteIsNaN) {
  for (const double v : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_TRUE(std::isnan(by_wide_sum({{v, 1.0}, {1.0, 1.0}})));
    EXPECT_TRUE(std::isnan(by_wide_sum({{1.0, 1.0}, {0.0, v}})));
  }
}

}  // namespace
}  // namespace shardproof::oracle
