// The local ops, by eye: formulas and rounding points of the specification, section 2.
#include "engine/ops/local_ops.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/collectives/collectives.h"
#include "engine/collectives/moves.h"
#include "engine/collectives/transfer.h"
#include "engine/numeric/detail/functions.h"
#include "tests/engine/run_program.h"
#include "tests/engine/written_values.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

TEST(Norm, DividesByTheRootMeanSquareOverTheWholeE) {
  // Mean square (4+4+16+16)/4 = 10, whose root the eps of 6 makes 4; two chips hold half of E each.
  const Torus torus(2, 1, 1);
  const Sharded x = values("BLE_x", {1, 1, 4}, {2, -2, 4, 4}, torus);
  const Sharded ss = values("BL", {1, 1}, {40}, torus);
  const Sharded g = values("E_x", {4}, {1, 1, 3, 0.5F}, torus);
  EXPECT_EQ(norm(x, ss, g, nullptr, 6, one()).f32(), (Chips{{0.5F, -0.5F}, {3, 0.5F}}));
  const double r = 1.0 / std::sqrt(40.0 / 4.0 + 1e-6);
  EXPECT_EQ(norm(x, ss, g, nullptr, 1e-6, one()).f32()[1][0], static_cast<float>((4.0 * r) * 3.0));
}

TEST(Norm, AddsABiasInF64BeforeItsOneRounding) {
  // r is 1: 3·2^-24 alone would round away, and 1/3 is no f32.
  const Sharded x = values("BE", {1, 2}, {1, 1});
  const Sharded ss = values("B", {1}, {2});
  const Sharded g = values("E", {2}, {1, 1.0F / 3.0F});
  const Sharded b = values("E", {2}, {0x1.8p-23F, 1});
  const double r = 1.0 / std::sqrt(1.0 + 1e-300);
  ASSERT_EQ(r, 1.0);
  EXPECT_EQ(norm(x, ss, g, &b, 1e-300, one()).f32(),
            (Chips{{static_cast<float>(1.0 + 0x1.8p-23),
                    static_cast<float>(static_cast<double>(1.0F / 3.0F) + 1.0)}}));
}

TEST(Layernorm, CentersAndTakesTheMeanOverTheWholeE) {
  const Torus torus(2, 1, 1);
  const Sharded x = values("BE_x", {1, 4}, {2, -2, 4, 4}, torus);
  const Sharded mu = divide_by(values("B", {1}, {8}, torus), 4, one());
  EXPECT_EQ(mu.f32(), (Chips{{2}, {2}}));
  EXPECT_EQ(center(x, mu, one()).f32(), (Chips{{0, -4}, {2, 2}}));
  EXPECT_EQ(divide_by(values("B", {1}, {1}), 3, one()).f32()[0][0], static_cast<float>(1.0 / 3.0));
}

TEST(Rope, TurnsChannelPairsHalfTheDimApart) {
  // Position 0 turns by 0, position 1 by a right angle in pair 0 and by 3-4-5 in pair 1.
  const Sharded cos = values("PJ", {2, 2}, {1, 1, 0, 0.6F});
  const Sharded sin = values("PJ", {2, 2}, {0, 0, 1, 0.8F});
  const Sharded t = values("BLHQ", {1, 2, 1, 4}, {1, 10, 2, 20, 1, 10, 2, 20});
  const Sharded pos = integers("BL", {1, 2}, {0, 1});
  const Sharded out = rope(RopePairs::half_split, t, pos, cos, sin, one());
  EXPECT_EQ(out.f32(), (Chips{{1, 10, 2, 20, -2, -10, 1, 20}}));
}

TEST(Rope, TurnsNeighboursWhenInterleaved) {
  // The same turns, of channels (0,1) and (2,3); the last two channels pass.
  const Sharded cos = values("PJ", {2, 2}, {1, 1, 0, 0.6F});
  const Sharded sin = values("PJ", {2, 2}, {0, 0, 1, 0.8F});
  const Sharded t = values("BLHQ", {1, 2, 1, 6}, {1, 2, 10, 20, 5, 6, 1, 2, 10, 20, 5, 6});
  const Sharded pos = integers("BL", {1, 2}, {0, 1});
  EXPECT_EQ(rope(RopePairs::interleaved, t, pos, cos, sin, one()).f32(),
            (Chips{{1, 2, 10, 20, 5, 6, -2, 1, -10, 20, 5, 6}}));
}

TEST(Rope, LeavesChannelsBeyondItsTableAlone) {
  const Sharded cos = values("PJ", {1, 1}, {0});
  const Sharded sin = values("PJ", {1, 1}, {1});
  const Sharded t = values("BLKQ", {1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Sharded pos = integers("BL", {1, 1}, {0});
  EXPECT_EQ(rope(RopePairs::half_split, t, pos, cos, sin, one()).f32(),
            (Chips{{-2, 1, 3, 4, -6, 5, 7, 8}}));
  for (std::int32_t p : {-1, 1})
    EXPECT_EQ(label_of([&] {
                rope(RopePairs::half_split, t, integers("BL", {1, 1}, {p}), cos, sin, one());
              }),
              "rope_range");
}

TEST(Elementwise, ScalesAndBiasesBroadcastByLetter) {
  const Torus torus(1, 2, 1);  // channels over y, so each chip sees its own scale
  const Sharded t = values("BLF_y", {1, 2, 2}, {1, 2, 3, 4}, torus);
  const Sharded s = values("F_y", {2}, {10, 100}, torus);
  ASSERT_EQ(t.f32(), (Chips{{1, 3}, {2, 4}}));
  EXPECT_EQ(scale(t, s, one()).f32(), (Chips{{10, 30}, {200, 400}}));
  EXPECT_EQ(bias(t, {&s}, one()).f32(), (Chips{{11, 13}, {102, 104}}));
  // Two biases are two additions, each rounded: (1 + 2^24) + 1 stays, 1 + (2^24 + 2) would not.
  const Sharded big = values("B", {1}, {0x1p24F});
  const Sharded unit = values("B", {1}, {1});
  EXPECT_EQ(bias(unit, {&big, &unit}, one()).f32(), (Chips{{0x1p24F}}));
  EXPECT_EQ(scale_by(t, 0.5F, one()).f32(), (Chips{{0.5F, 1.5F}, {1, 2}}));
  EXPECT_EQ(add(t, t, one()).f32(), (Chips{{2, 6}, {4, 8}}));
  // Dims [H,Q] of a scale broadcast over B and L, and in their own strides.
  const Sharded q = values("BLHQ", {1, 1, 2, 2}, {1, 1, 1, 1});
  EXPECT_EQ(scale(q, values("HQ", {2, 2}, {1, 2, 3, 4}), one()).f32(), (Chips{{1, 2, 3, 4}}));
  EXPECT_EQ(scale(q, values("Q", {2}, {5, 6}), one()).f32(), (Chips{{5, 6, 5, 6}}));
  EXPECT_EQ(scale(q, values("H", {2}, {5, 6}), one()).f32(), (Chips{{5, 5, 6, 6}}));
}

TEST(Elementwise, RoundWhereTheSpecificationSays) {
  const float third = 1.0F / 3.0F;
  // add is one f32 addition: 2^24 + 1 ties to even.
  EXPECT_EQ(add(values("B", {1}, {0x1p24F}), values("B", {1}, {1}), one()).f32()[0][0], 0x1p24F);
  // swiglu rounds w to f32 before the product.
  const float w = static_cast<float>(static_cast<double>(third) /
                                     (1.0 + std::exp(-static_cast<double>(third))));
  EXPECT_EQ(swish32(third), w);
  EXPECT_EQ(swiglu(values("B", {2}, {third, 0}), values("B", {2}, {third, 9}), one()).f32(),
            (Chips{{w * third, 0}}));
  // In a base-2 model of twice the gate, which is half of it.
  EXPECT_EQ(swish2_32(0.5F * third), w);
  EXPECT_EQ(swiglu(values("B", {2}, {0.5F * third, 0}), values("B", {2}, {third, 9}), one(),
                   Softmax::base2)
                .f32(),
            (Chips{{w * third, 0}}));
  EXPECT_EQ(geglu(values("B", {1}, {third}), values("B", {1}, {third}), one()).f32()[0][0],
            gelu32(third) * third);
  // The textbook forms 1 + tanh and 1 + erf cancel to 0 long before -8; these do not.
  EXPECT_EQ(gelu(values("B", {2}, {0, 100}), one()).f32(), (Chips{{0, 100}}));
  EXPECT_LT(gelu(values("B", {1}, {-8}), one()).f32()[0][0], 0.0F);
  EXPECT_LT(gelu_erf(values("B", {1}, {-8}), one()).f32()[0][0], 0.0F);
  EXPECT_EQ(gelu_erf(values("B", {2}, {0, 100}), one()).f32(), (Chips{{0, 100}}));
  // store is bf16 with 8 bits of mantissa, ties to even.
  EXPECT_EQ(store(values("B", {4}, {1, 1 + 0x1p-8F, 1 + 3 * 0x1p-8F, third}), one()).f32(),
            (Chips{{1, 1, 1 + 0x1p-6F, 0x1.56p-2F}}));
  // swish of a large negative number vanishes and does not become NaN.
  EXPECT_EQ(swish32(-200.0F), -0.0F);
  EXPECT_EQ(exp32(0.0F), 1.0F);
}

TEST(Append, GrowsTheCacheAndLeavesNaNInUnwrittenSlots) {
  // One kv head of one channel; row 0 writes slots 1 and 2, row 1 skips slot 1.
  const Sharded cache = values("BMKQ", {2, 2, 1, 1}, {10, 11, 20, 21});
  const Sharded t = values("BLKQ", {2, 2, 1, 1}, {1, 2, 3, 4});
  const Sharded out = append(cache, t, integers("BL", {2, 2}, {2, 3, 3, 0}), one());
  EXPECT_EQ(out.shape(), (Shape{2, 4, 1, 1}));
  const std::vector<float>& slots = out.f32()[0];
  EXPECT_EQ(std::vector<float>(slots.begin(), slots.begin() + 4),
            (std::vector<float>{10, 11, 1, 2}));
  EXPECT_EQ(slots[4], 4);  // position 0 overwrites
  EXPECT_EQ(slots[5], 21);
  EXPECT_TRUE(std::isnan(slots[6]));
  EXPECT_EQ(slots[7], 3);
  for (std::int32_t slot : {-1, 4})
    EXPECT_EQ(label_of([&] {
                append(cache, t, integers("BL", {2, 2}, {2, 3, 2, slot}), one());
              }),
              "append_range");
}

TEST(Append, RoundsWhatItAppendsToACacheOfBf16AndNothingElse) {
  const float third = 1.0F / 3.0F;
  const Sharded cache = values("BMKQ", {1, 1, 1, 2}, {third, 2});
  const Sharded t = values("BLKQ", {1, 1, 1, 2}, {third, -third});
  const Sharded pos = integers("BL", {1, 1}, {1});
  for (const CacheType kept : {CacheType::as_act, CacheType::f32})
    EXPECT_EQ(append(cache, t, pos, one(), kept).f32(), (Chips{{third, 2, third, -third}}));
  EXPECT_EQ(append(cache, t, pos, one(), CacheType::bf16).f32(),
            (Chips{{third, 2, 0x1.56p-2F, -0x1.56p-2F}}));
}

TEST(Append, StartsFromAnEmptyCache) {
  const Torus torus(1, 1, 2);
  const Sharded out = append(values("BMK_zQ", {1, 0, 2, 1}, {}, torus),
                             values("BLK_zQ", {1, 2, 2, 1}, {1, 2, 3, 4}, torus),
                             integers("BL", {1, 2}, {0, 1}, torus), one());
  EXPECT_EQ(out.f32(), (Chips{{1, 3}, {2, 4}}));
}

TEST(Attend, MasksTheFuture) {
  // Two queries of zeros: equal weights over the visible keys; Q=4, so scores are halved.
  const Sharded q = values("BLHQ", {1, 2, 1, 4}, std::vector<float>(8, 0));
  const Sharded k = values("BMKQ", {1, 3, 1, 4}, std::vector<float>(12, 1));
  const Sharded v = values("BMKQ", {1, 3, 1, 4}, {4, 0, 0, 0, 0, 4, 0, 0, 0, 0, 4, 0});
  const Attention a = attend(q, k, v, integers("BL", {1, 2}, {0, 1}), one());
  EXPECT_EQ(a.exp.f32(), (Chips{{1, 0, 0, 1, 1, 0}}));
  EXPECT_EQ(a.denom.f32(), (Chips{{1, 2}}));
  EXPECT_EQ(a.attn.f32(), (Chips{{4, 0, 0, 0, 2, 2, 0, 0}}));
  EXPECT_EQ(a.score.shape(), (Shape{1, 2, 1, 3}));
}

TEST(Attend, ScoresAreScaledAndTheirMaxTakenOverVisibleKeysOnly) {
  // q·k is 2, -6, 100 and halved; the third key is masked, and its NaN values are not read.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Sharded q = values("BLHQ", {1, 1, 1, 4}, {1, 0, 0, 0});
  const Sharded k = values("BMKQ", {1, 3, 1, 4}, {2, 9, 9, 9, -6, 9, 9, 9, 100, 9, 9, 9});
  const Sharded v = values("BMKQ", {1, 3, 1, 4}, {1, 2, 3, 4, 0, 0, 0, 0, nan, nan, nan, nan});
  const Attention a = attend(q, k, v, integers("BL", {1, 1}, {1}), one());
  EXPECT_EQ(a.score.f32(), (Chips{{1, -3, 0}}));
  EXPECT_EQ(a.max.f32(), (Chips{{1}}));
  EXPECT_EQ(a.exp.f32(), (Chips{{1, exp32(-4), 0}}));
  EXPECT_EQ(a.denom.f32()[0][0], static_cast<float>(1.0 + static_cast<double>(exp32(-4))));
  EXPECT_EQ(a.attn.f32()[0][1], static_cast<float>(2.0 / static_cast<double>(a.denom.f32()[0][0])));
}

TEST(Attend, InBaseTwoNothingIsScaledAndWeightsArePowersOfTwo) {
  const Sharded q = values("BLHQ", {1, 1, 1, 4}, {1, 0, 0, 0});
  const Sharded k = values("BMKQ", {1, 2, 1, 4}, {2, 9, 9, 9, -6, 9, 9, 9});
  const Sharded pos = integers("BL", {1, 1}, {1});
  for (const Regime regime : {Regime::exact, Regime::f32}) {
    const Attention a = attend(q, k, k, pos, one(), regime, nullptr, nullptr, Softmax::base2);
    EXPECT_EQ(a.score.f32(), (Chips{{2, -6}}));
    EXPECT_EQ(a.exp.f32(), (Chips{{1, 0x1p-8F}}));
    EXPECT_EQ(a.denom.f32(), (Chips{{1 + 0x1p-8F}}));
  }
  // Slopes are folded as they are: a key one position back.
  const Sharded slopes = values("H", {1}, {0.25F});
  const Attention a = attend(q, k, k, pos, one(), Regime::exact, &slopes, nullptr, Softmax::base2);
  EXPECT_EQ(a.score.f32(), (Chips{{1.75F, -6}}));
}

TEST(Attend, SlopesLowerScoresByTheDistanceOfTheKey) {
  // q·k is 8 for every key, 4 when scaled; two heads of slopes 1/2 and 2, at positions 0 and 2.
  const Sharded q = values("BLHQ", {1, 2, 2, 4}, std::vector<float>(16, 2));
  const Sharded k = values("BMKQ", {1, 3, 1, 4}, std::vector<float>(12, 1));
  const Sharded slopes = values("H", {2}, {0.5F, 2});
  const Attention a =
      attend(q, k, k, integers("BL", {1, 2}, {0, 2}), one(), Regime::exact, &slopes);
  EXPECT_EQ(a.score.f32(), (Chips{{4, 0, 0, 4, 0, 0, 3, 3.5F, 4, 0, 2, 4}}));
  EXPECT_EQ(a.max.f32(), (Chips{{4, 4, 4, 4}}));
  EXPECT_EQ(a.exp.f32()[0][6], exp32(-1));
  EXPECT_EQ(a.exp.f32()[0][9], exp32(-4));
  const Attention f32 =
      attend(q, k, k, integers("BL", {1, 2}, {0, 2}), one(), Regime::f32, &slopes);
  EXPECT_EQ(f32.score.f32(), a.score.f32());
}

TEST(Attend, ASlopeIsAddedInF64AndRoundedOnce) {
  // 2^-24 − 2^-25: in f32 the sum 1 + 2^-24 would round to 1 before anything else is added.
  const Sharded q = values("BLHQ", {1, 1, 1, 1}, {1 + 0x1p-23F});
  const Sharded k = values("BMKQ", {1, 2, 1, 1}, {1, 1});
  const Sharded slopes = values("H", {1}, {0x1.8p-24F});
  const Attention a = attend(q, k, k, integers("BL", {1, 1}, {1}), one(), Regime::exact, &slopes);
  EXPECT_EQ(a.score.f32(), (Chips{{1, 1 + 0x1p-23F}}));
}

TEST(Attend, QueryHeadHReadsKvHeadHTimesKOverH) {
  // Six heads on two kv heads whose only values are 100 and 200: grouped, not interleaved.
  const Sharded q = values("BLHQ", {1, 1, 6, 1}, std::vector<float>(6, 0));
  const Sharded k = values("BMKQ", {1, 1, 2, 1}, {0, 0});
  const Sharded v = values("BMKQ", {1, 1, 2, 1}, {100, 200});
  const Sharded pos = integers("BL", {1, 1}, {0});
  EXPECT_EQ(attend(q, k, v, pos, one()).attn.f32(), (Chips{{100, 100, 100, 200, 200, 200}}));

  // The same on 3x2x1: heads over yx, kv heads over y, each on its own chip.
  const Torus torus(3, 2, 1);
  const auto split = [&](const Sharded& t, const char* layout) {
    return shard(assemble(t), Layout::parse(layout), torus);
  };
  const Sharded there = integers("BL", {1, 1}, {0}, torus);
  const Attention a =
      attend(split(q, "BLH_yxQ"), split(k, "BMK_yQ"), split(v, "BMK_yQ"), there, one());
  EXPECT_EQ(assemble(a.attn).data, (std::vector<float>{100, 100, 100, 200, 200, 200}));
  const Attention replicated =
      attend(split(q, "BLH_xyQ"), split(k, "BMKQ"), split(v, "BMKQ"), there, one());
  EXPECT_EQ(assemble(replicated.attn).data, (std::vector<float>{100, 100, 100, 200, 200, 200}));
}

TEST(EmbedLookup, YieldsZeroForRowsOfOtherChips) {
  const Torus torus(1, 1, 3);  // rows 0 1 | 2 3 | 4 5
  const auto table =
      shared(values("V_zE", {6, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51}, torus));
  const auto ids = shared(integers("BL", {1, 2}, {3, 5}, torus));
  const Sharded e = run_op("embed_lookup(ids, table)", {ids, table});
  EXPECT_EQ(e.layout().to_string(), "BLE partialsum-z");
  EXPECT_EQ(e.partial().values, (ChipArrays<double>{{0, 0, 0, 0}, {30, 31, 0, 0}, {0, 0, 50, 51}}));
  EXPECT_EQ(run_op("all_reduce(e, z)", e).f32(), Chips(3, {30, 31, 50, 51}));
  const auto whole = shared(values("VE", {6, 2}, assemble(*table).data, torus));
  EXPECT_EQ(run_op("embed_lookup(ids, table)", {ids, whole}).f32(), Chips(3, {30, 31, 50, 51}));
  for (std::int32_t id : {-1, 6})
    EXPECT_EQ(
        label_of([&] {
          run_op("embed_lookup(ids, table)", {shared(integers("BL", {1, 1}, {id}, torus)), table});
        }),
        "embed_range");
}

TEST(Argmax, TheLowestIdWinsTies) {
  const Torus torus(1, 2, 3);  // block zy, one or two ids each; rows are sharded by nothing
  const Sharded z = values("BV_zy", {2, 12}, {1,  1,  1,  7,  7,  1,  1,  1,  1,  1,  1,  7,  //
                                              -5, -4, -3, -3, -9, -9, -9, -3, -9, -9, -9, -9},
                           torus);
  const auto c = run_op_results("local_argmax(z)", {shared(z)}, 2);
  EXPECT_EQ(c[0].layout().to_string(), "BC_zy");
  // Chips by number are blocks 0 2 4 1 3 5.
  EXPECT_EQ(c[0].f32(), (Chips{{1, -4}, {7, -9}, {1, -9}, {7, -3}, {1, -3}, {7, -9}}));
  EXPECT_EQ(c[1].i32(), (Ints{{0, 1}, {4, 4}, {8, 8}, {3, 2}, {6, 7}, {11, 10}}));
  const auto value = shared(run_op("all_gather(c, C, zy)", c[0]));
  const auto index = shared(run_op("all_gather(c, C, zy)", c[1]));
  EXPECT_EQ(run_op("argmax(value, index)", {value, index}).i32(), Ints(6, {3, 2}));
  // Gathered in another order than the vocabulary's, a later id wins: the order is what decides.
  const auto gathered_wrong = [&](const Sharded& candidates) {
    const Sharded named_otherwise =
        transfer(candidates, slice_moves(torus, candidates.local(), 1, Axes()),
                 Layout::parse("BC_yz"), candidates.shape(), one());
    return shared(all_gather(named_otherwise, 'C', Axes::parse("yz")));
  };
  const auto wrong_value = gathered_wrong(c[0]);
  const auto wrong_index = gathered_wrong(c[1]);
  EXPECT_EQ(run_op("argmax(value, index)", {wrong_value, wrong_index}).i32(), Ints(6, {4, 2}));
}

}  // namespace
}  // namespace shardproof
