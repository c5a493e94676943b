// The judge's map from chip to block, against tables written by hand.
#include "golden/compare/block_map.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace shardproof {
namespace {

TEST(JudgedOffset, IsTheTableWrittenByHand) {
  // On 4x2x3, of F=48 in F_zyx, chip (x,y,z) holds block (z·2+y)·4+x of 24, two wide.
  const Torus torus(4, 2, 3);
  const struct {
    int chip;  // (x·2 + y)·3 + z
    std::int64_t zyx, xzy, zy, x;
  } table[] = {                        //          F_zyx  E_xzy  F_zy  E_x
               {0, 0, 0, 0, 0},        // (0,0,0)
               {1, 16, 4, 16, 0},      // (0,0,1): block 8; block 2; block 2 of 6; block 0
               {2, 32, 8, 32, 0},      // (0,0,2): 16; 4; 4; 0
               {3, 8, 2, 8, 0},        // (0,1,0): 4; 1; 1; 0
               {5, 40, 10, 40, 0},     // (0,1,2): 20; 5; 5; 0
               {6, 2, 12, 0, 12},      // (1,0,0): 1; 6; 0; 1
               {10, 26, 18, 24, 12},   // (1,1,1): 13; 9; 3; 1
               {18, 6, 36, 0, 36},     // (3,0,0): 3; 18; 0; 3
               {23, 46, 46, 40, 36}};  // (3,1,2): 23; 23; 5; 3
  for (const auto& row : table) {
    EXPECT_EQ(judged_offset(Layout::parse("F_zyx"), {48}, torus, row.chip), Shape{row.zyx});
    EXPECT_EQ(judged_offset(Layout::parse("E_xzy"), {48}, torus, row.chip), Shape{row.xzy});
    EXPECT_EQ(judged_offset(Layout::parse("F_zy"), {48}, torus, row.chip), Shape{row.zy});
    EXPECT_EQ(judged_offset(Layout::parse("E_x"), {48}, torus, row.chip), Shape{row.x});
    EXPECT_EQ(judged_offset(Layout::parse("BE_x"), {7, 48}, torus, row.chip), (Shape{0, row.x}));
  }
}

TEST(JudgedElements, AreTheTableWrittenByHand) {
  // B_yLE_x of [2,3,4] on 2x2x1: chip (1,1,0) holds the second row, all of L, columns 2 and 3.
  const Torus torus(2, 2, 1);
  const Layout layout = Layout::parse("B_yLE_x");
  const Shape shape{2, 3, 4};
  EXPECT_EQ(judged_block(layout, shape, torus), (Shape{1, 3, 2}));
  const auto read = [&](int chip, std::int64_t until) {
    std::vector<std::int64_t> globals;
    const bool ended =
        judged_elements(layout, shape, torus, chip, [&](std::int64_t local, std::int64_t global) {
          EXPECT_EQ(local, std::ssize(globals));
          globals.push_back(global);
          return local == until;
        });
    EXPECT_EQ(ended, until < 6);
    return globals;
  };
  EXPECT_EQ(read(3, 6), (std::vector<std::int64_t>{14, 15, 18, 19, 22, 23}));
  EXPECT_EQ(read(2, 6), (std::vector<std::int64_t>{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(read(1, 6), (std::vector<std::int64_t>{12, 13, 16, 17, 20, 21}));
  EXPECT_EQ(read(3, 2), (std::vector<std::int64_t>{14, 15, 18})) << "it ends when it is told to";
}

TEST(JudgedElements, OfNothingAndOfAScalar) {
  const Torus torus(1, 1, 2);
  int seen = 0;
  const auto count = [&](std::int64_t local, std::int64_t global) {
    EXPECT_EQ(local, 0);
    EXPECT_EQ(global, 0);
    ++seen;
    return false;
  };
  judged_elements(Layout::parse("BM"), {3, 0}, torus, 1, count);
  judged_elements(Layout::parse("MB"), {0, 3}, torus, 1, count);
  EXPECT_EQ(seen, 0);
  judged_elements(Layout({}, Axes()), {}, torus, 1, count);
  EXPECT_EQ(seen, 1);
}

TEST(JudgedDivides, IsTheTableWrittenByHand) {
  const Torus torus(4, 2, 3);
  const Layout layout = Layout::parse("B_xE_zy");
  EXPECT_TRUE(judged_divides(layout, {4, 12}, torus));
  EXPECT_TRUE(judged_divides(layout, {0, 6}, torus));
  EXPECT_FALSE(judged_divides(layout, {6, 12}, torus));
  EXPECT_FALSE(judged_divides(layout, {4, 8}, torus));
  EXPECT_FALSE(judged_divides(layout, {4}, torus)) << "too few dims";
  EXPECT_FALSE(judged_divides(layout, {4, 12, 1}, torus)) << "too many";
}

TEST(JudgedGroup, AndPartAreTheTableWrittenByHand) {
  const Torus torus(4, 2, 3);  // chip (x,y,z) is number (x·2 + y)·3 + z
  const struct {
    const char* layout;
    int chip;
    std::vector<int> group;
    std::size_t part;
  } table[] = {
      {"BE partialsum-z", 4, {3, 4, 5}, 1},            // (0,1,1)
      {"BE partialsum-zy", 4, {0, 1, 2, 3, 4, 5}, 4},  // y·3 + z, however written
      {"BE partialsum-yz", 4, {0, 1, 2, 3, 4, 5}, 4},  //
      {"BE partialsum-xz", 11, {3, 4, 5, 9, 10, 11, 15, 16, 17, 21, 22, 23}, 5},  // (1,1,2)
      {"BE partialsum-x", 23, {5, 11, 17, 23}, 3},                                // (3,1,2)
      {"B_xE", 23, {23}, 0}};
  for (const auto& row : table) {
    const Layout layout = Layout::parse(row.layout);
    EXPECT_EQ(judged_group(layout, torus, row.chip), row.group) << row.layout;
    EXPECT_EQ(judged_part(layout, torus, row.chip), row.part) << row.layout;
  }
}

}  // namespace
}  // namespace shardproof
