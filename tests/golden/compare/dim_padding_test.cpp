#include "golden/compare/dim_padding.h"

#include <gtest/gtest.h>

#include "golden/compare/comparison.h"

namespace shardproof {
namespace {

ModelConfig grouped() {
  ModelConfig m;
  m.H = 20, m.K = 5, m.V = 250;
  return m;
}

TEST(JudgedDimPadding, KnowsDimsByTheirLetters) {
  const DimPadding padding(grouped(), 24, 264);
  EXPECT_EQ(padding.placed("BLHQ", {2, 3, 20, 8}), (Shape{2, 3, 24, 8}));
  EXPECT_EQ(padding.placed("BMKQ", {2, 3, 5, 8}), (Shape{2, 3, 6, 8}));
  EXPECT_EQ(padding.placed("VE", {250, 20}), (Shape{264, 20}));
  EXPECT_EQ(padding.placed("BLE", {2, 3, 20}), (Shape{2, 3, 20}));
  EXPECT_FALSE(padding.none());
  EXPECT_TRUE(padding.pads('K'));
  EXPECT_FALSE(padding.pads('C'));
}

TEST(JudgedDimPadding, LeavesOneKvHeadAlone) {
  ModelConfig m = grouped();
  m.K = 1;
  EXPECT_EQ(DimPadding(m, 23, 0).placed("KH", {1, 20}), (Shape{1, 23}));
  m.K = m.H;
  EXPECT_EQ(DimPadding(m, 23, 0).placed("KH", {20, 20}), (Shape{23, 23}));
}

TEST(JudgedDimPadding, IsNoneWithoutKeysOrWithTheModelsOwn) {
  EXPECT_TRUE(DimPadding().none());
  EXPECT_TRUE(DimPadding(grouped(), 0, 0).none());
  EXPECT_TRUE(DimPadding(grouped(), 20, 250).none());
  EXPECT_EQ(DimPadding().placed('H', 7), 7);
}

TEST(JudgedDimPadding, PutsASplitHeadDimTogether) {
  EXPECT_EQ(whole_letters(Layout::parse("BLS_zR_yxQ")), "BLHQ");
  EXPECT_EQ(whole_letters(Layout::parse("BLE_x")), "BLE");
}

TEST(JudgedDimPadding, PadsAndTakesAway) {
  const std::vector<int> own{1, 2, 3, 4};
  const std::vector<int> longer = with_padding(own, {2, 2}, {3, 3}, 0);
  EXPECT_EQ(longer, (std::vector<int>{1, 2, 0, 3, 4, 0, 0, 0, 0}));
  EXPECT_EQ(without_padding(longer, {2, 2}, {3, 3}), own);
  EXPECT_EQ(with_padding(own, {4}, {4}, 0), own);
}

TEST(Comparison, LeavesPaddingAlone) {
  const Torus torus(1, 1, 2);
  const Layout layout = Layout::parse("H_z");
  Tensor t(Shape{4});
  t.data = {1.0F, 2.0F, 3.0F, 99.0F};
  const std::vector<std::uint32_t> bits{0x3f800000, 0x40000000, 0x40400000, 0};
  const ExpectedBits padded{.shape = {4}, .bits = bits, .padding = {false, false, false, true}};
  const Comparison c = compare(padded, layout, shard(t, layout, torus));
  EXPECT_FALSE(c.mismatch);
  EXPECT_EQ(c.elements, 3);
  const ExpectedBits all{.shape = {4}, .bits = bits};
  EXPECT_TRUE(compare(all, layout, shard(t, layout, torus)).mismatch);
  // What is beside it is compared, on its chip, and counted without it.
  t.data[2] = 4.0F;
  const Comparison wrong = compare(padded, layout, shard(t, layout, torus));
  ASSERT_TRUE(wrong.mismatch);
  EXPECT_EQ(wrong.mismatch->index, (Shape{2}));
  EXPECT_EQ(wrong.mismatch->reach->extent(), "on 1 of 2 chips, 1 of 4 elements, no replicas");
  // A mask of another size is none.
  const ExpectedBits other{.shape = {4}, .bits = bits, .padding = {true}};
  EXPECT_THROW(compare(other, layout, shard(t, layout, torus)), Error);
}

}  // namespace
}  // namespace shardproof
