#include "engine/cost/plan/tori.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace shardproof::cost {
namespace {

std::set<std::string> names(const std::vector<Torus>& tori) {
  std::set<std::string> all;
  for (const Torus& torus : tori) all.insert(torus.to_string());
  return all;
}

TEST(Tori, AreAllTriplesOnce) {
  for (int chips = 1; chips <= 96; ++chips) {
    std::size_t triples = 0;
    for (int X = 1; X <= chips; ++X)
      for (int Y = 1; Y <= chips; ++Y)
        for (int Z = 1; X * Y * Z <= chips; ++Z) triples += X * Y * Z == chips ? 1U : 0U;
    const std::vector<Torus> tori = all_tori(chips);
    EXPECT_EQ(tori.size(), triples) << chips;
    EXPECT_EQ(names(tori).size(), triples) << chips;
    for (const Torus& torus : tori) EXPECT_EQ(torus.chips(), chips);
  }
  EXPECT_EQ(names(all_tori(3)), (std::set<std::string>{"1x1x3", "1x3x1", "3x1x1"}));
}

/// The slices of the released code (partitioning.py) are among them.
TEST(Tori, OfSlicesAreThoseOfAPod) {
  EXPECT_EQ(names(slice_tori(1, 4)), (std::set<std::string>{"1x1x1"}));
  EXPECT_EQ(names(slice_tori(4, 4)), (std::set<std::string>{"1x2x2", "2x1x2", "2x2x1"}));
  EXPECT_EQ(names(slice_tori(8, 4)), (std::set<std::string>{"2x2x2"}));
  EXPECT_EQ(names(slice_tori(16, 4)), (std::set<std::string>{"2x2x4", "2x4x2", "4x2x2"}));
  EXPECT_EQ(names(slice_tori(32, 4)), (std::set<std::string>{"2x4x4", "4x2x4", "4x4x2"}));
  EXPECT_EQ(names(slice_tori(64, 4)), (std::set<std::string>{"4x4x4"}));
  EXPECT_EQ(names(slice_tori(192, 4)), (std::set<std::string>{"12x4x4", "4x12x4", "4x4x12"}));
  EXPECT_TRUE(slice_tori(12, 4).empty());
  EXPECT_TRUE(slice_tori(72, 4).empty());
  EXPECT_EQ(slice_tori(12, 1).size(), all_tori(12).size()) << "a chip whose pods have any axes";
  EXPECT_EQ(slice_sizes(4, 200), (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 192}));
}

}  // namespace
}  // namespace shardproof::cost
