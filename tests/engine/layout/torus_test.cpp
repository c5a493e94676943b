#include "engine/layout/torus.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/engine/random_layout.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

// Written by hand for the torus 4x2x3.
struct Row {
  int chip;
  std::string name;
  int x, y, z;
  int yz, zy, zyx, yzx, xzy;
};
const Row kTable[] = {
    // chip, name, x, y, z, and its block along yz, zy, zyx, yzx, xzy
    {0, "(0,0,0)", 0, 0, 0, 0, 0, 0, 0, 0},     {1, "(0,0,1)", 0, 0, 1, 1, 2, 8, 4, 2},
    {3, "(0,1,0)", 0, 1, 0, 3, 1, 4, 12, 1},    {6, "(1,0,0)", 1, 0, 0, 0, 0, 1, 1, 6},
    {16, "(2,1,1)", 2, 1, 1, 4, 3, 14, 18, 15}, {23, "(3,1,2)", 3, 1, 2, 5, 5, 23, 23, 23},
};

TEST(Torus, PlacesChipsAndBlocksAsTheTableSays) {
  const Torus torus = Torus::parse("4x2x3");
  const auto block = [&](int chip, const char* axes) {
    return torus.block(chip, Axes::parse(axes));
  };
  for (const Row& row : kTable) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(torus.name(row.chip), row.name);
    EXPECT_EQ(torus.coordinate(row.chip, Axis::x), row.x);
    EXPECT_EQ(torus.coordinate(row.chip, Axis::y), row.y);
    EXPECT_EQ(torus.coordinate(row.chip, Axis::z), row.z);
    EXPECT_EQ(block(row.chip, ""), 0);
    EXPECT_EQ(block(row.chip, "x"), row.x);
    EXPECT_EQ(block(row.chip, "yz"), row.yz);
    EXPECT_EQ(block(row.chip, "zy"), row.zy);
    EXPECT_EQ(block(row.chip, "zyx"), row.zyx);
    EXPECT_EQ(block(row.chip, "yzx"), row.yzx);
    EXPECT_EQ(block(row.chip, "xzy"), row.xzy);
  }
}

TEST(Torus, GroupsChipsInTheOrderOfTheSubscript) {
  const Torus torus(4, 2, 3);
  const auto group = [&](const char* axes) { return torus.group(16, Axes::parse(axes)); };
  EXPECT_EQ(group(""), (std::vector{16}));
  EXPECT_EQ(group("x"), (std::vector{4, 10, 16, 22}));
  EXPECT_EQ(group("yz"), (std::vector{12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(group("zy"), (std::vector{12, 15, 13, 16, 14, 17}));
}

TEST(Torus, RefusesWhatIsNone) {
  for (const char* text :
       {"", "4x2", "4x2x", "4x2x3x1", "4x2x3 ", "x4x2x3", "4,2,3", "4 x2x3", "99999999999x1x1"})
    EXPECT_EQ(label_of([&] { Torus::parse(text); }), "torus_c0") << text;
  for (const char* text : {"0x2x3", "4x-1x3"})
    EXPECT_EQ(label_of([&] { Torus::parse(text); }), "torus_c1") << text;
  for (const char* text : {"17x16x16", "4097x1x1", "2147483647x2147483647x2147483647"})
    EXPECT_EQ(label_of([&] { Torus::parse(text); }), "torus_c2") << text;
  EXPECT_EQ(Torus::parse("16x16x16").chips(), Torus::kMaxChips);
  EXPECT_EQ(message_of([] { Torus(0, 2, 3); }),
            "torus_c1: torus 0x2x3 has an axis of size 0; the least is 1");
}

TEST(Axes, RefusesWhatAreNone) {
  EXPECT_EQ(label_of([] { Axes::parse("xw"); }), "axes_c1");
  EXPECT_EQ(label_of([] { Axes::parse("x,y"); }), "axes_c1");
  EXPECT_EQ(label_of([] { Axes::parse("xyx"); }), "axes_c2");
  EXPECT_EQ(label_of([] { Axes::parse("zy").with(Axis::y); }), "axes_c2");
  EXPECT_EQ(message_of([] { Axes::parse("xyx"); }), "axes_c2: axis x appears twice in 'xyx'");
}

TEST(Axes, KnowSuffixesAndPrefixesInTheirOrder) {
  const Axes zyx = Axes::parse("zyx");
  EXPECT_TRUE(zyx.ends_with(Axes::parse("yx")));
  EXPECT_FALSE(zyx.ends_with(Axes::parse("xy")));
  EXPECT_FALSE(zyx.ends_with(Axes::parse("zy")));
  EXPECT_TRUE(zyx.starts_with(Axes::parse("zy")));
  EXPECT_FALSE(zyx.starts_with(Axes::parse("yx")));
  EXPECT_TRUE(zyx.ends_with(Axes()) && zyx.starts_with(Axes()));
  EXPECT_FALSE(Axes::parse("yx").ends_with(zyx));
  EXPECT_EQ(zyx.without(Axes::parse("xy")).to_string(), "z");
  EXPECT_EQ(zyx.sorted().to_string(), "xyz");
  EXPECT_FALSE(zyx == zyx.sorted());
  EXPECT_FALSE(Axes::parse("z") == Axes::parse("zy"));
}

RC_GTEST_PROP(TorusLaw, ParseInvertsPrint, ()) {
  const Torus torus = draw_torus();
  RC_ASSERT(Torus::parse(torus.to_string()) == torus);
  const Axes axes = draw_bins(2)[1];
  RC_ASSERT(Axes::parse(axes.to_string()) == axes);
}

RC_GTEST_PROP(TorusLaw, AGroupHasOneChipForEachBlockAndSharesTheOtherAxes, ()) {
  const Torus torus = draw_torus();
  const std::vector<Axes> bins = draw_bins(2);
  const int chip = draw_int(0, torus.chips() - 1);
  const std::vector<int> group = torus.group(chip, bins[1]);
  RC_ASSERT(static_cast<int>(group.size()) == torus.size(bins[1]));
  for (std::size_t i = 0; i < group.size(); ++i) {
    RC_ASSERT(torus.block(group[i], bins[1]) == static_cast<int>(i));
    RC_ASSERT(torus.block(group[i], bins[0]) == torus.block(chip, bins[0]));
  }
}

RC_GTEST_PROP(TorusLaw, BlocksOverAllAxesNumberTheChips, ()) {
  const Torus torus = draw_torus();
  const Axes order = shuffled(Axes::parse("xyz"));
  std::set<int> blocks;
  for (int chip = 0; chip < torus.chips(); ++chip) blocks.insert(torus.block(chip, order));
  RC_ASSERT(static_cast<int>(blocks.size()) == torus.chips());
  RC_ASSERT(*blocks.begin() == 0 && *blocks.rbegin() == torus.chips() - 1);
}

}  // namespace
}  // namespace shardproof
