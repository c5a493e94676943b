// A tensor that goes from the chips of one torus to those of another: what arrives, who sends what,
// and how much that is.
#include "engine/collectives/crossing.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "engine/collectives/transfer.h"
#include "tests/engine/random_layout.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

Tensor counted(const Shape& shape) {
  Tensor tensor(shape);
  std::iota(tensor.data.begin(), tensor.data.end(), 1.0F);
  return tensor;
}

/// Two chips hold a half each, three chips want a third each: the middle one pulls from both.
TEST(Crossing, ATensorInHalvesArrivesInThirds) {
  const Torus two(2, 1, 1), three(1, 3, 1);
  const Layout from = Layout::parse("B_x"), to = Layout::parse("B_y");
  const Moves moves = crossing_moves(two, from, three, to, {6});
  EXPECT_EQ(moves.block, Shape{1});
  std::vector<std::vector<int>> senders;
  for (const std::vector<Piece>& pieces : std::as_const(moves.pieces)) {
    senders.emplace_back();
    for (const Piece& piece : pieces) senders.back().push_back(piece.from_chip);
  }
  EXPECT_EQ(senders, (std::vector<std::vector<int>>{{0, 0}, {0, 1}, {1, 1}}));
  EXPECT_EQ(pulled(moves), 6);
  EXPECT_EQ(sent(moves, 0), 3);
  EXPECT_EQ(sent(moves, 1), 3);
}

/// Four chips hold all of it, two want all of it: they pull from a chip each.
TEST(Crossing, ReplicasTakeTurns) {
  const Moves moves = crossing_moves(Torus(4, 1, 1), Layout::parse("BM"), Torus(1, 1, 2),
                                     Layout::parse("BM"), {2, 5});
  EXPECT_EQ(pulled(moves), 20);
  EXPECT_EQ(sent(moves, 0), 10);
  EXPECT_EQ(sent(moves, 1), 10);
  EXPECT_EQ(sent(moves, 2), 0);
}

TEST(Crossing, RefusesWhatIsNoTensorOnBothSides) {
  const auto label = [](const char* from, const char* to, const Shape& shape) {
    return label_of([&] {
      crossing_moves(Torus(2, 1, 1), Layout::parse(from), Torus(1, 3, 1), Layout::parse(to), shape);
    });
  };
  EXPECT_EQ(label("B_xM", "B_yM", {6, 1}), "");
  EXPECT_EQ(label("B_xM", "MB_y", {6, 6}), "crossing_c1");
  EXPECT_EQ(label("B_xM", "B_y", {6, 1}), "crossing_c1");
  EXPECT_EQ(label("BM partialsum-x", "BM", {6, 1}), "crossing_c1");
  EXPECT_EQ(label("BM", "BM partialsum-y", {6, 1}), "crossing_c1");
  EXPECT_EQ(label("B_xM", "B_yM", {3, 1}), "local_c1");
  EXPECT_EQ(label("B_xM", "B_yM", {2, 1}), "local_c1");
}

/// A tensor, where it comes from and where it goes.
struct Sample {
  Torus source = draw_torus(), target = draw_torus();
  Layout from = draw_layout("BMKQ"), to = draw_layout("BMKQ");
  Shape shape;

  Sample() {
    for (std::size_t d = 0; d < from.rank(); ++d)
      shape.push_back(std::lcm(source.size(from.dims()[d].axes), target.size(to.dims()[d].axes)) *
                      draw_int(1, 2));
  }
  Moves moves() const { return crossing_moves(source, from, target, to, shape); }
};

RC_GTEST_PROP(Crossing, WhatArrivesIsTheTensor, ()) {
  const Sample s;
  RC_PRE(element_count(s.shape) < 200'000);
  const Tensor tensor = counted(s.shape);
  Threads threads(1);
  const bool shares = *rc::gen::element(true, false);
  threads.share(shares);
  const Sharded there = shard(tensor, s.from, s.source);
  const Sharded here = transfer(there, s.moves(), s.target, s.to, s.shape, threads);
  const Sharded wanted = shard(tensor, s.to, s.target);
  RC_ASSERT(here.layout() == s.to);
  RC_ASSERT(here.torus() == s.target);
  RC_ASSERT(here.f32() == wanted.f32());  // on every chip, replicas too
}

/// Each element of each shard is pulled once, from a chip that has it; of one block of the source
/// a chip knows one holder.
RC_GTEST_PROP(Crossing, EachElementIsPulledOnceByEachChipThatNeedsIt, ()) {
  const Sample s;
  RC_PRE(element_count(s.shape) < 200'000);
  const Moves moves = s.moves();
  const Shape here = local_shape(s.to, s.shape, s.target);
  std::int64_t all = 0, of_senders = 0;
  for (std::size_t chip = 0; chip < moves.pieces.size(); ++chip) {
    std::set<std::int64_t> places;
    std::map<std::vector<int>, std::set<int>> senders;  // by the block that they hold
    for (const Piece& piece : std::as_const(moves.pieces)[chip]) {
      places.insert(piece.to);
      std::vector<int> block;
      for (const Layout::Dim& dim : s.from.dims())
        block.push_back(s.source.block(piece.from_chip, dim.axes));
      senders[block].insert(piece.from_chip);
    }
    RC_ASSERT(std::ssize(places) == std::ssize(std::as_const(moves.pieces)[chip]));
    RC_ASSERT(std::ssize(places) * element_count(moves.block) == element_count(here));
    for (const auto& [block, chips] : senders) RC_ASSERT(chips.size() == 1U);
    all += element_count(here);
  }
  RC_ASSERT(pulled(moves) == all);
  for (int chip = 0; chip < s.source.chips(); ++chip) of_senders += sent(moves, chip);
  RC_ASSERT(of_senders == all);
}

}  // namespace
}  // namespace shardproof
