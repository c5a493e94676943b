// Each collective on integers small enough to follow by eye. Chips are listed by their number
// (x·Y + y)·Z + z; tensors hold 0, 1, 2, ...
#include "engine/collectives.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/moves.h"
#include "tests/engine/run_program.h"

namespace shardproof {
namespace {

using Chips = ChipArrays<float>;

Sharded iota(const char* layout, const Shape& shape, const Torus& torus) {
  return shard(tensor_of(shape), Layout::parse(layout), torus);
}

/// Elements received, chip by chip, by the only collective of a program.
class Traffic : public Observer {
 public:
  void observe(const Scope&, const Program&, const Op*, const Result&, const Sharded&) override {}
  void moved(const Scope&, const Program&, const Op&, std::int64_t n) override { total += n; }
  std::int64_t total = 0;
};

TEST(AllGather, JoinsBlocksInTheOrderOfTheSubscript) {
  const Torus torus(1, 2, 3);
  const Sharded t = iota("E_zy", {6}, torus);
  ASSERT_EQ(t.f32(), (Chips{{0}, {2}, {4}, {1}, {3}, {5}}));
  EXPECT_EQ(run_op("all_gather(t, E, y)", t).f32(),
            (Chips{{0, 1}, {2, 3}, {4, 5}, {0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(run_op("all_gather(t, E, zy)", t).f32(), Chips(6, {0, 1, 2, 3, 4, 5}));
}

TEST(AllGather, OfAnInnerDimInterleavesRows) {
  // 0 1 2
  // 3 4 5
  const Sharded t = iota("BE_x", {2, 3}, Torus(3, 2, 1));
  ASSERT_EQ(t.f32(), (Chips{{0, 3}, {0, 3}, {1, 4}, {1, 4}, {2, 5}, {2, 5}}));
  EXPECT_EQ(run_op("all_gather(t, E, x)", t).f32(), Chips(6, {0, 1, 2, 3, 4, 5}));
}

TEST(AllGather, RemovedFillsTheShapeFromTheChipsOwnShard) {
  const Sharded t = iota("E_z", {3}, Torus(1, 1, 3));
  EXPECT_EQ(run_op("all_gather(t, E, z)", t, true).f32(), (Chips{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}}));
}

// x is 1, 10, 100 over z; every chip's product is its own x times (1, 2, 3).
constexpr const char* kPartialGate = R"(
  input x : BLE_z is in
  input w : E_zF is weight w_gate
  p : BLF partialsum-z = einsum(BLE,EF->BLF; x, w) is raw gate
)";
const std::map<std::string, Tensor> kGateInputs{
    {"x", tensor_of({1, 1, 3}, {1, 10, 100})},
    {"w", tensor_of({3, 3}, {1, 2, 3, 1, 2, 3, 1, 2, 3})},
};

TEST(AllReduce, SumsTheGroup) {
  const auto out =
      run_program(std::string(kPartialGate) + "r : BLF = all_reduce(p, z) is raw gate\noutput p, r",
                  Torus(1, 1, 3), kGateInputs);
  EXPECT_EQ(out.at("p")->partial().values,
            (ChipArrays<double>{{1, 2, 3}, {10, 20, 30}, {100, 200, 300}}));
  EXPECT_EQ(out.at("r")->f32(), Chips(3, {111, 222, 333}));
}

TEST(AllReduce, OfOneAxisLeavesTheOther) {
  // Squares 1, 4, 9, 16 over (x,z); their sums over z stay partial over x.
  const auto out = run_program(R"(
    input x : BLE_xz is in
    ss : BL partialsum-xz = einsum(BLE,BLE->BL; x, x) is stat ss
    sz : BL partialsum-x = all_reduce(ss, z) is stat ss
    sa : BL = all_reduce(sz, x) is stat ss
    output sz, sa
  )",
                               Torus(2, 1, 2), {{"x", tensor_of({1, 1, 4}, {1, 2, 3, 4})}});
  EXPECT_EQ(out.at("sz")->partial().values, (ChipArrays<double>{{5}, {5}, {25}, {25}}));
  EXPECT_EQ(out.at("sa")->f32(), Chips(4, {30}));
}

TEST(AllReduce, RemovedRoundsTheChipsOwnTerm) {
  const auto out = run_program(std::string(kPartialGate) + "output p", Torus(1, 1, 3), kGateInputs);
  EXPECT_EQ(run_op("all_reduce(p, z)", {out.at("p")}, true).f32(),
            (Chips{{1, 2, 3}, {10, 20, 30}, {100, 200, 300}}));
}

TEST(ReduceScatter, LeavesEachChipItsBlockOfTheSum) {
  const auto out = run_program(
      std::string(kPartialGate) + "r : BLF_z = reduce_scatter(p, F, z) is raw gate\noutput r",
      Torus(1, 1, 3), kGateInputs);
  EXPECT_EQ(out.at("r")->f32(), (Chips{{111}, {222}, {333}}));
}

TEST(ReduceScatter, GivesTheFirstAxisTheMajorBlocks) {
  // Six chips of 1x2x3 add 1, 10, ..., 100000 to each of six columns of ones, times 1..6.
  const auto out = run_program(R"(
    input x : BLE_yz is in
    input w : E_yzF is weight w_gate
    p : BLF partialsum-yz = einsum(BLE,EF->BLF; x, w) is raw gate
    a : BLF_yz = reduce_scatter(p, F, yz) is raw gate
    b : BLF_zy = reduce_scatter(p, F, zy) is raw gate
    c : BLF_z partialsum-y = reduce_scatter(p, F, z) is raw gate
    output a, b, c
  )",
                               Torus(1, 2, 3),
                               {{"x", tensor_of({1, 1, 6}, {1, 10, 100, 1000, 10000, 100000})},
                                {"w", [] {
                                   Tensor w({6, 6});
                                   for (std::size_t i = 0; i < 36; ++i)
                                     w.data[i] = static_cast<float>(i % 6 + 1);
                                   return w;
                                 }()}});
  const float one = 111111;
  EXPECT_EQ(out.at("a")->f32(),
            (Chips{{one}, {2 * one}, {3 * one}, {4 * one}, {5 * one}, {6 * one}}));
  EXPECT_EQ(out.at("b")->f32(),
            (Chips{{one}, {3 * one}, {5 * one}, {2 * one}, {4 * one}, {6 * one}}));
  // Of y=0 the terms 1, 10, 100, of y=1 the others; columns two by two over z.
  EXPECT_EQ(out.at("c")->partial().values, (ChipArrays<double>{{111, 222},
                                                               {333, 444},
                                                               {555, 666},
                                                               {111000, 222000},
                                                               {333000, 444000},
                                                               {555000, 666000}}));
}

TEST(AllToAll, TradesOneDimForAnother) {
  // 0 1 2    rows over z: chip z holds row z; then columns over z.
  // 3 4 5
  // 6 7 8
  const Sharded t = iota("B_zE", {3, 3}, Torus(1, 1, 3));
  ASSERT_EQ(t.f32(), (Chips{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}));
  EXPECT_EQ(run_op("all_to_all(t, B->E, z)", t).f32(), (Chips{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}}));
  EXPECT_EQ(run_op("all_to_all(t, B->E, z)", t, true).f32(),
            (Chips{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}));
}

TEST(AllToAll, AppendsTheAxesInTheOrderAsked) {
  const Torus torus(1, 2, 3);
  const Tensor rows = tensor_of({6, 6});  // element 6·row + column
  const Sharded t = shard(rows, Layout::parse("B_zyE"), torus);
  const auto columns = [&](const char* call) {
    std::vector<float> first_row;
    const Sharded moved = run_op(call, t);
    for (const auto& chip : moved.f32()) first_row.push_back(chip[0]);
    return first_row;  // element (0, column) is the column's number
  };
  EXPECT_EQ(columns("all_to_all(t, B->E, zy)"), (std::vector<float>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(columns("all_to_all(t, B->E, zy as yz)"), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(PermuteAxes, RenamesTheOrderOfABlock) {
  const Sharded t = iota("E_zy", {6}, Torus(1, 2, 3));
  ASSERT_EQ(t.f32(), (Chips{{0}, {2}, {4}, {1}, {3}, {5}}));
  EXPECT_EQ(run_op("permute_axes(t, E, zy->yz)", t).f32(), (Chips{{0}, {1}, {2}, {3}, {4}, {5}}));
  EXPECT_EQ(run_op("permute_axes(t, E, zy->yz)", t, true).f32(), t.f32());
  // Three axes on 3x2x1: chip (x,y,0) holds block y·3+x of E_yzx, then block x·2+y of E_xyz.
  const Sharded u = iota("E_yzx", {6}, Torus(3, 2, 1));
  ASSERT_EQ(u.f32(), (Chips{{0}, {3}, {1}, {4}, {2}, {5}}));
  EXPECT_EQ(run_op("permute_axes(t, E, yzx->xyz)", u).f32(), (Chips{{0}, {1}, {2}, {3}, {4}, {5}}));
}

TEST(Slice, KeepsTheChipsOwnBlock) {
  const Sharded t = iota("E", {6}, Torus(1, 2, 3));
  EXPECT_EQ(run_op("slice(t, E, zy)", t).f32(), (Chips{{0}, {2}, {4}, {1}, {3}, {5}}));
  EXPECT_EQ(run_op("slice(t, E, y)", t).f32(),
            (Chips{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {3, 4, 5}, {3, 4, 5}, {3, 4, 5}}));
}

TEST(Last, KeepsTheLastPositionOfEachRow) {
  // Two rows of three positions of two channels, the channels over z.
  const Sharded t = iota("BLE_z", {2, 3, 2}, Torus(1, 1, 2));
  const Sharded out = run_op("last(t)", t);
  EXPECT_EQ(out.layout.to_string(), "BE_z");
  EXPECT_EQ(out.f32(), (Chips{{4, 10}, {5, 11}}));
}

TEST(Traffic, CountsWhatCrossesBetweenChips) {
  // Shards of 4 elements before all_gather and all_to_all, of 12 before the reductions.
  const Torus torus(1, 2, 3);
  const auto received = [&](const Moves& moves) {
    std::int64_t total = 0;
    for (int chip = 0; chip < torus.chips(); ++chip) total += moves.received(chip);
    return total;
  };
  const Axes z = Axes::parse("z");
  const Axes zy = Axes::parse("zy");
  EXPECT_EQ(received(all_gather_moves(torus, {4}, 0, zy)), 6 * 5 * 4);
  EXPECT_EQ(received(all_gather_moves(torus, {4}, 0, zy, true)), 0);
  EXPECT_EQ(received(reduce_scatter_moves(torus, {12}, 0, z)), 6 * 2 * 4);
  EXPECT_EQ(received(all_reduce_moves(torus, {12}, z)), 6 * 2 * 12);
  EXPECT_EQ(received(all_to_all_moves(torus, {2, 6}, 0, 1, z, z)), 6 * 2 * 4);
  EXPECT_EQ(received(slice_moves(torus, {12}, 0, z)), 0);
  // zy -> yz on 2 x 3: blocks 0 and 5 stay, four chips get one of 4 elements.
  EXPECT_EQ(received(permute_axes_moves(torus, {4}, zy, Axes::parse("yz"))), 4 * 4);

  Traffic traffic;
  Threads one(1);
  const Program program = parse_program(
      "test", "input x : BLE_zy is in\nxg : BLE_z = all_gather(x, E, y) is in\noutput xg");
  execute(program, {{"x", shared(iota("BLE_zy", {1, 1, 24}, torus))}},
          {any_config(), one, &traffic, {}, {}, Hazards::hostile()});
  EXPECT_EQ(traffic.total, 6 * 4);
}

}  // namespace
}  // namespace shardproof
