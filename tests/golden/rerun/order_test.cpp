// Sums in drawn orders: every term is added once, and each way of adding is met.
#include "golden/rerun/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace shardproof::rerun {
namespace {

TEST(Order, HasEveryTermOnceAndEveryWay) {
  std::set<std::size_t> blocks;
  std::set<std::pair<bool, bool>> ways;
  std::set<std::vector<std::uint32_t>> permutations;
  for (std::uint64_t run = 0; run < 100; ++run) {
    const Order order(16, Draw(3, run, "a sum"));
    std::vector<std::uint32_t> sorted = order.terms;
    std::sort(sorted.begin(), sorted.end());
    for (std::uint32_t k = 0; k < 16; ++k) ASSERT_EQ(sorted[k], k);
    blocks.insert(order.block);
    ways.insert({order.pairs, order.fused});
    permutations.insert(order.terms);
  }
  EXPECT_EQ(blocks, (std::set<std::size_t>{1, 2, 4, 8, 16}));
  EXPECT_EQ(ways.size(), 4U);
  EXPECT_GT(permutations.size(), 30U);  // the others are as they come
  EXPECT_EQ(Order(1, Draw(1, 1, "")).block, 1U);
  EXPECT_TRUE(Order(0, Draw(1, 1, "")).terms.empty());
}

/// Of whole numbers every order has the same sum; on the wire of bf16 it has not.
TEST(Order, OfWholeNumbersIsExact) {
  for (std::size_t n : {0U, 1U, 2U, 7U, 64U, 100U})
    for (std::uint64_t run = 0; run < 40; ++run)
      for (const int wire : {0, 1, 3, 200}) {
        Adder<float> adder;
        const float row[] = {1.0F, -2.0F, 0.5F};
        float out[3] = {9.0F, 9.0F, 9.0F};
        adder.add_up(
            Order(n, Draw(1, run, "")), {NumberFormat::f64, wire, NumberFormat::f32}, 3,
            [](std::size_t k) { return static_cast<float>(k + 1); },
            [&](std::size_t) { return row; }, out);
        const auto sum = static_cast<float>(n * (n + 1) / 2);
        for (int c = 0; c < 3; ++c) ASSERT_EQ(out[c], row[c] * sum) << n << " " << run;
      }
}

TEST(Order, SumsOfBf16AreBf16) {
  Adder<float> adder;
  const float one = 1.0F;
  for (std::uint64_t run = 0; run < 40; ++run) {
    float out = 0.0F;
    const Order order(300, Draw(1, run, ""));
    adder.add_up(
        order, {NumberFormat::bf16}, 1, [&](std::size_t) { return one; },
        [&](std::size_t) { return &one; }, &out);
    EXPECT_EQ(out, rounded(out, NumberFormat::bf16));
    // Where 1 is half a step of a chain.
    if (order.block > 256) {
      EXPECT_EQ(out, 256.0F);
    }
  }
}

/// The next numbers of f16 around v, of which it has 2^10 from one power of two to the next.
TEST(NumberFormat, OfF16IsTheNearest) {
  EXPECT_EQ(rounded(1.0F + 0x1p-11F, NumberFormat::f16), 1.0F);  // ties to even
  EXPECT_EQ(rounded(1.0F + 0x3p-11F, NumberFormat::f16), 1.0F + 0x1p-9F);
  EXPECT_EQ(rounded(1.0F + 0x1.002p-11F, NumberFormat::f16), 1.0F + 0x1p-10F);
  EXPECT_EQ(rounded(0x1p-24F, NumberFormat::f16), 0x1p-24F);  // the smallest
  EXPECT_EQ(rounded(0x1p-25F, NumberFormat::f16), 0.0F);
  EXPECT_EQ(rounded(0x1.8p-25F, NumberFormat::f16), 0x1p-24F);
  EXPECT_EQ(rounded(0x1.ff8p-15F, NumberFormat::f16), 0x1.ff8p-15F);
  EXPECT_EQ(rounded(65519.0F, NumberFormat::f16), 65504.0F);
  EXPECT_EQ(rounded(-65520.0F, NumberFormat::f16), -INFINITY);
  EXPECT_TRUE(std::isnan(rounded(NAN, NumberFormat::f16)));
  EXPECT_TRUE(std::signbit(rounded(-0x1p-26F, NumberFormat::f16)));
  EXPECT_EQ(rounded(0x1p-13 + 0x1p-40, NumberFormat::f32), 0x1p-13 + 0x1p-40 - 0x1p-40);
  EXPECT_EQ(rounded(1.0 + 0x1p-40, NumberFormat::f64), 1.0 + 0x1p-40);
}

}  // namespace
}  // namespace shardproof::rerun
