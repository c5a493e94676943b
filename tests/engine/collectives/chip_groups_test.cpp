// Which chips share one result: those that read the very same buffers, whatever a layout says.
#include "engine/collectives/chip_groups.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "engine/collectives/collectives.h"
#include "engine/collectives/transfer.h"
#include "engine/ops/local_ops.h"
#include "tests/engine/written_values.h"

namespace shardproof {
namespace {

/// How many buffers there are.
std::size_t buffers(const Sharded& value) {
  ChipGroups groups(value.torus());
  groups.split(value);
  return groups.first_chips().size();
}

// ---- one V a chip, by reference

TEST(PerChip, WhatOneChipChangesIsItsOwn) {
  PerChip<Buffer<float>> chips(3);
  chips[0] = {1, 2};
  chips.share(1, 0);
  chips.share(2, 0);
  EXPECT_TRUE(chips.shares(0, 1) && chips.shares(1, 2));
  const PerChip<Buffer<float>> before = chips;
  chips[1][0] = 7;
  EXPECT_FALSE(chips.shares(0, 1));
  EXPECT_TRUE(chips.shares(0, 2));
  EXPECT_EQ(chips, (PerChip<Buffer<float>>{{1, 2}, {7, 2}, {1, 2}}));
  EXPECT_EQ(before, (PerChip<Buffer<float>>{{1, 2}, {1, 2}, {1, 2}})) << "a copy has its own chips";
}

TEST(PerChip, ToReadIsNotToChange) {
  PerChip<Buffer<float>> chips(2, Buffer<float>{1});
  chips.share(1, 0);
  const auto& read = chips;
  EXPECT_EQ(read[0].data(), read[1].data());
  EXPECT_EQ(read.identity(0), read.identity(1));
  EXPECT_TRUE(PerChip<Buffer<float>>(2).shares(0, 1)) << "two empty ones";
}

// ---- groups

TEST(ChipGroups, AreSplitByBuffersAndNumbers) {
  const Torus torus(2, 1, 3);
  ChipGroups groups(torus, calling_thread());
  EXPECT_EQ(groups.first_chips().size(), 1U);
  groups.split(iota("E_z", {6}, torus));
  EXPECT_EQ(std::vector<int>(groups.first_chips().begin(), groups.first_chips().end()),
            (std::vector<int>{0, 1, 2}));
  groups.split([](int chip) { return chip == 5 ? 1 : 0; });
  EXPECT_EQ(std::vector<int>(groups.first_chips().begin(), groups.first_chips().end()),
            (std::vector<int>{0, 1, 2, 5}));
}

// Of so many numbers some fall on one place of the table.
TEST(ChipGroups, OfAsManyNumbersAsChipsAreOneChipEach) {
  for (const std::uint64_t step : {1U, 64U, 4096U}) {
    ChipGroups groups(Torus(4, 4, 4), calling_thread());
    groups.split([&](int chip) { return static_cast<std::uint64_t>(chip) * step; });
    EXPECT_TRUE(groups.all_alone()) << step;
  }
}

TEST(ChipGroups, AreOneChipEachWhereThreadsDoNotShare) {
  const Torus torus(2, 2, 1);
  Threads one(1);
  one.share(false);
  EXPECT_TRUE(ChipGroups(torus, one).all_alone());
  one.share(true);
  EXPECT_FALSE(ChipGroups(torus, one).all_alone());
}

/// Groups found by comparing every pair of chips.
RC_GTEST_PROP(ChipGroups, AreThoseOfComparingEveryPair, ()) {
  const Torus torus(*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 4), *rc::gen::inRange(1, 4));
  const auto chips = static_cast<std::size_t>(torus.chips());
  const auto rounds = *rc::gen::container<std::vector<std::vector<int>>>(
      static_cast<std::size_t>(*rc::gen::inRange(0, 4)),
      rc::gen::container<std::vector<int>>(chips, rc::gen::inRange(-2, 3)));
  ChipGroups groups(torus, calling_thread());
  for (const auto& numbers : rounds)
    groups.split([&](int chip) { return numbers[static_cast<std::size_t>(chip)]; });
  PerChip<std::vector<int>> made(chips);
  groups.for_each(calling_thread(),
                  [&](std::int64_t chip) { made[static_cast<std::size_t>(chip)] = {1}; });
  groups.share(made);
  for (std::size_t a = 0; a < chips; ++a)
    for (std::size_t b = 0; b < chips; ++b) {
      bool same = true;
      for (const auto& numbers : rounds) same = same && numbers[a] == numbers[b];
      RC_ASSERT(made.shares(a, b) == same);
    }
}

// ---- values

TEST(Sharing, EqualNumbersInTwoBuffersAreTwo) {
  const Torus torus(1, 1, 2);
  const Sharded own = iota("E", {4}, torus, Replicas::own);
  EXPECT_EQ(buffers(own), 2U);
  EXPECT_EQ(buffers(add(own, own, calling_thread())), 2U);
  const Sharded common = iota("E", {4}, torus);
  EXPECT_EQ(buffers(common), 1U);
  EXPECT_EQ(buffers(add(common, common, calling_thread())), 1U);
  EXPECT_EQ(buffers(add(common, own, calling_thread())), 2U);
}

TEST(Sharing, ChipsThatReceiveTheSameHaveOneResult) {
  const Torus torus(3, 2, 1);
  const Sharded x = iota("E_yx", {12}, torus, Replicas::own);
  EXPECT_EQ(buffers(all_gather(x, 'E', Axes::parse("yx"))), 1U);
  EXPECT_EQ(buffers(all_gather(x, 'E', Axes::parse("x"))), 2U);
}

TEST(Sharing, AMissingGatherLeavesChipsWithWhatTheyHave) {
  // The layout says that both chips hold all of E; neither does.
  const Torus torus(1, 1, 2);
  Moves none = all_gather_moves(torus, {2}, 0, Axes::parse("z"));
  for (std::size_t chip = 0; chip < 2; ++chip)
    for (Piece& piece : none.pieces[chip]) piece.from_chip = static_cast<int>(chip);
  const Sharded x = iota("E_z", {4}, torus);
  const Sharded wrong = transfer(x, none, Layout::parse("E"), {4}, calling_thread());
  EXPECT_EQ(buffers(wrong), 2U);
  EXPECT_NE(wrong.f32()[0], wrong.f32()[1]);
  EXPECT_EQ(buffers(add(wrong, wrong, calling_thread())), 2U) << "nor does what is made of it";
}

TEST(Sharing, AReplicaThatDivergesStaysApart) {
  const Torus torus(1, 3, 1);
  for (int chip = 0; chip < 3; ++chip) {
    Sharded x = iota("E", {4}, torus);
    x.f32_of(chip)[3] = -1;
    EXPECT_EQ(buffers(x), 2U);
    const Sharded y = add(x, x, calling_thread());
    EXPECT_EQ(buffers(y), 2U);
    for (int other = 0; other < 3; ++other)
      EXPECT_EQ(y.f32()[static_cast<std::size_t>(other)][3], other == chip ? -2 : 2 * 3) << other;
  }
}

TEST(Sharing, APlaceThatMattersKeepsChipsApart) {
  const Torus torus(1, 1, 2);
  const Sharded x = iota("BE", {2, 4}, torus);
  const Sharded slices = slice(x, 'E', Axes::parse("z"));
  EXPECT_EQ(buffers(slices), 2U);
  // The best of each block of the vocabulary, of two blocks that are one buffer.
  const Tensor zeros({1, 4});
  Sharded z = shard(zeros, Layout::parse("BV_z"), torus);
  z = {torus, z.layout(), z.shape(), [&] {
         ChipArrays<float> same = z.f32();
         same.share(1, 0);
         return same;
       }()};
  const Candidates best = local_argmax(z, calling_thread());
  EXPECT_EQ(best.index.i32()[0][0], 0);
  EXPECT_EQ(best.index.i32()[1][0], 2);
}

TEST(Sharing, ARelabelledValueHoldsTheSameBuffers) {
  const Sharded x = iota("H_zQ", {4, 3}, Torus(1, 1, 2));
  const Sharded view = x.relabelled(Layout::parse("S_zRQ"), {2, 2, 3});
  for (std::size_t chip = 0; chip < 2; ++chip)
    EXPECT_EQ(x.f32().identity(chip), view.f32().identity(chip));
}

TEST(Sharing, WhatIsPoisonedIsTheValueNotItsBuffers) {
  Sharded x = iota("H_zQ", {4, 3}, Torus(2, 1, 2));
  const Sharded view = x.relabelled(Layout::parse("S_zRQ"), {2, 2, 3});
  const ChipArrays<float> before = view.f32();
  x.poison();
  for (const Buffer<float>& of_chip : x.f32())
    for (const float v : of_chip) EXPECT_TRUE(std::isnan(v));
  EXPECT_EQ(view.f32(), before);
}

}  // namespace
}  // namespace shardproof
