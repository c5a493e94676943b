// Each collective on integers small enough to follow by eye. Chips are listed by their number
// (x·Y + y)·Z + z; tensors hold 0, 1, 2, ...
#include "engine/collectives/collectives.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/collectives/faults.h"
#include "engine/collectives/moves.h"
#include "engine/collectives/transfer.h"
#include "tests/engine/run_program.h"
#include "tests/engine/written_values.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

const Axes x = Axes::parse("x");
const Axes y = Axes::parse("y");
const Axes z = Axes::parse("z");
const Axes yz = Axes::parse("yz");
const Axes zy = Axes::parse("zy");

/// Elements received, chip by chip, by the only collective of a program.
class Traffic : public Observer {
 public:
  void observe(const Scope&, const Program&, const Op*, const ValueDecl&, const Sharded&) override {
  }
  void moved(const Scope&, const Program&, const Op&, std::int64_t n) override { total += n; }
  std::int64_t total = 0;
};

/// A product of unsharded operands, laid out as the spec's operands say.
Sharded product(const char* spec, const Torus& torus, const char* a_layout, const Tensor& a,
                const char* b_layout, const Tensor& b) {
  return run_op(std::string("einsum(") + spec + "; a, b)",
                {shared(shard(a, Layout::parse(a_layout), torus)),
                 shared(shard(b, Layout::parse(b_layout), torus))});
}

/// a is 1, 10, 100 over z; every chip's product is its own a times (1, 2, 3).
Sharded partial_gate() {
  return product("BLE,EF->BLF", Torus(1, 1, 3), "BLE_z", tensor_of({1, 1, 3}, {1, 10, 100}), "E_zF",
                 tensor_of({3, 3}, {1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

TEST(Collectives, CheckTheirOwnTypingRules) {
  const Sharded t = iota("BE_zy", {6, 6}, Torus(1, 2, 3));
  const Sharded p = partial_gate();
  const Sharded three = iota("BLE", {2, 0, 6}, Torus(1, 2, 3));
  const Sharded long_s = iota("S_zR_y", {6, 2}, Torus(1, 2, 3));
  const auto split = [&](const char* parts) { split_dim(t, 'E', Layout::parse(parts)); };
  const std::pair<const char*, std::function<void()>> broken[] = {
      {"all_gather_c1", [&] { all_gather(t, 'F', z); }},
      {"all_gather_c1", [&] { all_gather(t, 'E', Axes()); }},
      {"all_gather_c2", [&] { all_gather(t, 'E', x); }},
      {"all_gather_c3", [&] { all_gather(t, 'E', z); }},
      {"reduce_scatter_c1", [&] { reduce_scatter(p, 'E', z); }},
      {"reduce_scatter_c2", [&] { reduce_scatter(p, 'F', x); }},
      {"reduce_scatter_c2", [&] { reduce_scatter(t, 'B', z); }},
      {"all_reduce_c1", [&] { all_reduce(p, Axes()); }},
      {"all_reduce_c2", [&] { all_reduce(t, z); }},
      {"all_to_all_c1", [&] { all_to_all(t, 'E', 'E', zy); }},
      {"all_to_all_c2", [&] { all_to_all(t, 'B', 'E', y); }},
      {"all_to_all_c3", [&] { all_to_all(t, 'E', 'B', z); }},
      {"all_to_all_c4", [&] { all_to_all(t, 'E', 'B', zy, z); }},
      {"permute_axes_c1", [&] { permute_axes(t, 'F', zy, yz); }},
      {"permute_axes_c2", [&] { permute_axes(t, 'E', yz, zy); }},
      {"permute_axes_c3", [&] { permute_axes(t, 'E', zy, z); }},
      {"slice_c1", [&] { slice(t, 'F', x); }},
      {"slice_c2", [&] { slice(t, 'B', y); }},
      {"last_c1", [&] { last(t); }},
      {"last_c2",
       [&] {
         last(iota("BL_zE", {2, 3, 2}, Torus(1, 1, 3)));
       }},
      {"last_c3", [&] { last(three); }},
      {"split_dim_c1", [&] { split_dim(t, 'H', Layout::parse("S_zR_y")); }},
      {"split_dim_c2", [&] { split("S_zy"); }},
      {"split_dim_c3", [&] { split("S_yR_z"); }},
      {"split_dim_c4", [&] { split_dim(t, 'E', Layout::parse("S_zR_y"), {6}); }},
      {"split_dim_c4", [&] { split_dim(t, 'E', Layout::parse("S_zyR"), {4}); }},
      {"merge_dim_c1", [&] { merge_dim(t, "SR", 'H'); }},
      {"merge_dim_c1", [&] { merge_dim(t, "S", 'H'); }},
      {"merge_dim_c2", [&] { merge_dim(t, "EB", 'H'); }},
      {"merge_dim_c3", [&] { merge_dim(long_s, "SR", 'H'); }},
      {"local_c1", [&] { slice(iota("E", {6}, Torus(4, 1, 1)), 'E', x); }},
      {"local_c1",
       [&] {
         all_to_all(iota("B_zE", {3, 4}, Torus(1, 1, 3)), 'B', 'E', z);
       }},
  };
  for (const auto& [label, call] : broken) EXPECT_EQ(label_of(call), label);
  // The message is the one of the type check.
  EXPECT_EQ(message_of([&] { all_gather(t, 'E', z); }),
            "all_gather_c3: z is not the minor-most suffix of E_zy, whose axes are removed from "
            "the right");
}

TEST(Collectives, GiveTheSameOnManyThreads) {
  Threads three(3);
  const Sharded t = iota("B_zE", {6, 6}, Torus(1, 2, 3));
  EXPECT_EQ(all_to_all(t, 'B', 'E', z, three).f32(), all_to_all(t, 'B', 'E', z).f32());
  EXPECT_EQ(all_reduce(partial_gate(), z, Schedule::group, three).f32(),
            all_reduce(partial_gate(), z).f32());
}

/// What is left of a collective's result when no chip receives anything from another.
Sharded lost(const Sharded& t, const Moves& moves, const Sharded& like) {
  const Moves plan = without_transfer(moves);
  Threads& one = calling_thread();
  return t.holds_partial() ? reduce(t, plan, like.layout(), like.shape(), one)
                           : transfer(t, plan, like.layout(), like.shape(), one);
}

TEST(WithoutTransfer, FillsTheShapeFromTheChipsOwnShard) {
  const Sharded t = iota("E_z", {3}, Torus(1, 1, 3));
  EXPECT_EQ(lost(t, all_gather_moves(t.torus(), {1}, 0, z), all_gather(t, 'E', z)).f32(),
            (Chips{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}}));
  const Sharded u = iota("E_zy", {6}, Torus(1, 2, 3));
  EXPECT_EQ(lost(u, permute_axes_moves(u.torus(), {1}, zy, yz), permute_axes(u, 'E', zy, yz)).f32(),
            u.f32());
}

TEST(WithoutTransfer, OfASumLeavesTheChipsOwnTerm) {
  const Sharded p = partial_gate();
  EXPECT_EQ(lost(p, all_reduce_moves(p.torus(), p.local(), z), all_reduce(p, z)).f32(),
            (Chips{{1, 2, 3}, {10, 20, 30}, {100, 200, 300}}));
  EXPECT_EQ(
      lost(p, reduce_scatter_moves(p.torus(), p.local(), 2, z), reduce_scatter(p, 'F', z)).f32(),
      (Chips{{1}, {20}, {300}}));
}

TEST(Reduce, OfSumsThatStayPartialTakesEquallyManyPieces) {
  const Tensor a = tensor_of({1, 1, 4}, {1, 2, 3, 4});
  const Sharded ss = product("BLE,BLE->BL", Torus(2, 1, 2), "BLE_xz", a, "BLE_xz", a);
  const Sharded right = all_reduce(ss, z);
  const auto reduced = [&](const Moves& plan) {
    return reduce(ss, plan, right.layout(), right.shape(), calling_thread());
  };
  Moves plan = all_reduce_moves(ss.torus(), ss.local(), z);
  plan.pieces[3].push_back(plan.pieces[3][0]);
  EXPECT_EQ(label_of([&] { reduced(plan); }), "transfer_c2");
  for (auto& pieces : plan.pieces) pieces.resize(3, pieces[0]);  // 1, 4, 1 and 9, 16, 9
  EXPECT_EQ(reduced(plan).partial().values, (ChipArrays<double>{{6}, {6}, {34}, {34}}));
}

TEST(WithoutTransfer, OfAllToAllKeepsTheBlocksInTheirOwnOrder) {
  const Sharded t = iota("B_zE", {3, 3}, Torus(1, 1, 3));
  EXPECT_EQ(
      lost(t, all_to_all_moves(t.torus(), {1, 3}, 0, 1, z, z), all_to_all(t, 'B', 'E', z)).f32(),
      (Chips{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}));
  // Whatever order the blocks would have been received in.
  const Sharded u = iota("B_zyE", {6, 6}, Torus(1, 2, 3));
  const Sharded like = all_to_all(u, 'B', 'E', zy, yz);
  EXPECT_EQ(lost(u, all_to_all_moves(u.torus(), {1, 6}, 0, 1, zy, yz), like).f32(), u.f32());
}

TEST(Traffic, CountsWhatCrossesBetweenChips) {
  // Shards of 4 elements before all_gather and all_to_all, of 12 before the reductions.
  const Torus torus(1, 2, 3);
  const auto received = [&](const Moves& moves) {
    std::int64_t total = 0;
    for (int chip = 0; chip < torus.chips(); ++chip) total += moves.received(chip);
    return total;
  };
  EXPECT_EQ(received(all_gather_moves(torus, {4}, 0, zy)), 6 * 5 * 4);
  EXPECT_EQ(received(without_transfer(all_gather_moves(torus, {4}, 0, zy))), 0);
  EXPECT_EQ(received(reduce_scatter_moves(torus, {12}, 0, z)), 6 * 2 * 4);
  EXPECT_EQ(received(all_reduce_moves(torus, {12}, z)), 6 * 2 * 12);
  EXPECT_EQ(received(all_to_all_moves(torus, {2, 6}, 0, 1, z, z)), 6 * 2 * 4);
  EXPECT_EQ(received(slice_moves(torus, {12}, 0, z)), 0);
  // zy -> yz on 2 x 3: blocks 0 and 5 stay, four chips get one of 4 elements.
  EXPECT_EQ(received(permute_axes_moves(torus, {4}, zy, yz)), 4 * 4);

  Traffic traffic;
  Threads one(1);
  const Program program = parse_program(
      "test", "input x : BLE_zy is in\nxg : BLE_z = all_gather(x, E, y) is in\noutput xg");
  execute(program, {{"x", shared(iota("BLE_zy", {1, 1, 24}, torus))}},
          any_execution(one, &traffic));
  EXPECT_EQ(traffic.total, 6 * 4);
}

}  // namespace
}  // namespace shardproof
