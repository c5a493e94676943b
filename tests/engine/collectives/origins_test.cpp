// The origins of partial sums, by eye: what decides a sum that f64 and its bound cannot.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "engine/collectives/collectives.h"
#include "engine/collectives/moves.h"
#include "engine/collectives/transfer.h"
#include "tests/engine/run_program.h"

namespace shardproof {
namespace {

// Two chips of z add 1 + 2^-24 and 2^-53 + 2^-80 in column 0: just above half an ulp of f64 above
// half an ulp of f32 above 1, which no f64 sum with a bound decides. Column 1 is the opposite.
struct Tie {
  Torus torus{1, 1, 2};
  SharedValue x = shared(shard(tensor_of({1, 1, 4}, {1, 0x1p-24F, 0x1p-53F, 0x1p-80F}),
                               Layout::parse("BLE_z"), torus));
  SharedValue w =
      shared(shard(tensor_of({4, 2}, {1, -1, 1, -1, 1, -1, 1, -1}), Layout::parse("E_zF"), torus));
  SharedValue partial = shared(run_op("einsum(BLE,EF->BLF; x, w)", {x, w}));
};
constexpr float kUp = 1 + 0x1p-23F;
const Axes z = Axes::parse("z");

TEST(Origins, DecideWhatF64CannotAndCountDoubles) {
  const Tie tie;
  const Sharded once = all_reduce(*tie.partial, z);
  EXPECT_EQ(once.f32(), ChipArrays<float>(2, {kUp, -kUp}));
  // As a set the origins would give the single sum where the double is undecided.
  Moves doubled = all_reduce_moves(tie.torus, tie.partial->local(), z);
  for (auto& pieces : doubled.pieces) pieces = {pieces[0], pieces[1], pieces[0], pieces[1]};
  EXPECT_EQ(reduce(*tie.partial, doubled, once.layout(), once.shape(), calling_thread()).f32(),
            ChipArrays<float>(2, {2 * kUp, -2 * kUp}));
}

TEST(Origins, TravelWithTheirElements) {
  // Column 1 alone: its origin is index 1, not its new place 0.
  const Torus torus(1, 2, 2);
  const SharedValue x = shared(shard(tensor_of({1, 1, 4}, {1, 0x1p-24F, 0x1p-53F, 0x1p-80F}),
                                     Layout::parse("BLE_z"), torus));
  const SharedValue w =
      shared(shard(tensor_of({4, 2}, {1, -1, 1, -1, 1, -1, 1, -1}), Layout::parse("E_zF"), torus));
  const Sharded sliced = slice(run_op("einsum(BLE,EF->BLF; x, w)", {x, w}), 'F', Axes::parse("y"));
  const ChipArrays<float> right{{kUp}, {kUp}, {-kUp}, {-kUp}};
  EXPECT_EQ(all_reduce(sliced, z).f32(), right);
  Partial partial = sliced.partial();
  for (auto& origins : partial.origins) origins.clear();
  const Sharded without(torus, sliced.layout(), sliced.shape(), partial);
  EXPECT_NE(all_reduce(without, z).f32(), right) << "the origins were not looked at";
}

TEST(Origins, AreRecomputedFromTheChipsOwnOperands) {
  // Chip 1 holds a weight of its own making, which turns its term round: 1 + 2^-24 - 2^-53 - 2^-80.
  Tie tie;
  Sharded mutated = *tie.w;
  const Buffer<float> other{-1, 1, -1, 1};
  std::copy(other.begin(), other.end(), mutated.f32_of(1).begin());
  const Sharded out =
      all_reduce(run_op("einsum(BLE,EF->BLF; x, w)", {tie.x, shared(std::move(mutated))}), z);
  EXPECT_EQ(out.f32(), ChipArrays<float>(2, {1, -1}));
}

}  // namespace
}  // namespace shardproof
