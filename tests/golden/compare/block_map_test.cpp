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
  } table[] = {{.chip = 0, .zyx = 0, .xzy = 0, .zy = 0, .x = 0},
               // (0,0,1): block 8 of F_zyx; block 2 of E_xzy; block 2 of 6; block 0
               {.chip = 1, .zyx = 16, .xzy = 4, .zy = 16, .x = 0},
               {.chip = 2, .zyx = 32, .xzy = 8, .zy = 32, .x = 0},      // (0,0,2): 16; 4; 4; 0
               {.chip = 3, .zyx = 8, .xzy = 2, .zy = 8, .x = 0},        // (0,1,0): 4; 1; 1; 0
               {.chip = 5, .zyx = 40, .xzy = 10, .zy = 40, .x = 0},     // (0,1,2): 20; 5; 5; 0
               {.chip = 6, .zyx = 2, .xzy = 12, .zy = 0, .x = 12},      // (1,0,0): 1; 6; 0; 1
               {.chip = 10, .zyx = 26, .xzy = 18, .zy = 24, .x = 12},   // (1,1,1): 13; 9; 3; 1
               {.chip = 18, .zyx = 6, .xzy = 36, .zy = 0, .x = 36},     // (3,0,0): 3; 18; 0; 3
               {.chip = 23, .zyx = 46, .xzy = 46, .zy = 40, .x = 36}};  // (3,1,2): 23; 23; 5; 3
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

TEST(JudgedBlocks, AreTheTableWrittenByHand) {
  const Torus torus(2, 2, 1);
  // Rows of two in a tensor whose rows are four long.
  const JudgedBlocks cut(Layout::parse("B_yLE_x"), {2, 3, 4}, torus);
  EXPECT_EQ(cut.elements(), 6);
  EXPECT_EQ(cut.run(), 2);
  EXPECT_EQ(std::vector<std::int64_t>(cut.runs().begin(), cut.runs().end()),
            (std::vector<std::int64_t>{0, 4, 8}));
  const std::int64_t firsts[] = {0, 12, 2, 14};  // of chips (0,0,0), (0,1,0), (1,0,0), (1,1,0)
  for (int chip = 0; chip < 4; ++chip) EXPECT_EQ(cut.first(chip), firsts[chip]) << chip;
  // Where the last dims are whole a run is as long as what they hold; of all whole, all.
  const JudgedBlocks rows(Layout::parse("B_yxLE"), {4, 3, 2}, torus);
  EXPECT_EQ(rows.run(), 6);
  EXPECT_EQ(rows.runs().size(), 1U);
  EXPECT_EQ(rows.first(2), 6) << "(1,0,0) holds block 0·2 + 1 of four";
  EXPECT_EQ(JudgedBlocks(Layout::parse("BLE"), {4, 3, 2}, torus).run(), 24);
  const JudgedBlocks nothing(Layout::parse("BM"), {3, 0}, torus);
  EXPECT_EQ(nothing.elements(), 0);
  EXPECT_TRUE(nothing.runs().empty());
  const JudgedBlocks scalar(Layout({}, Axes()), {}, torus);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.runs().size(), 1U);
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
      {.layout = "BE partialsum-z", .chip = 4, .group = {3, 4, 5}, .part = 1},  // (0,1,1)
      {.layout = "BE partialsum-zy",
       .chip = 4,
       .group = {0, 1, 2, 3, 4, 5},
       .part = 4},  // y·3 + z, however written
      {.layout = "BE partialsum-yz", .chip = 4, .group = {0, 1, 2, 3, 4, 5}, .part = 4},  //
      {.layout = "BE partialsum-xz",
       .chip = 11,
       .group = {3, 4, 5, 9, 10, 11, 15, 16, 17, 21, 22, 23},
       .part = 5},                                                                     // (1,1,2)
      {.layout = "BE partialsum-x", .chip = 23, .group = {5, 11, 17, 23}, .part = 3},  // (3,1,2)
      {.layout = "B_xE", .chip = 23, .group = {23}, .part = 0}};
  for (const auto& row : table) {
    const Layout layout = Layout::parse(row.layout);
    EXPECT_EQ(judged_group(layout, torus, row.chip), row.group) << row.layout;
    EXPECT_EQ(judged_first(layout, torus, row.chip), row.group.front()) << row.layout;
    EXPECT_EQ(judged_part(layout, torus, row.chip), row.part) << row.layout;
  }
}

}  // namespace
}  // namespace shardproof
