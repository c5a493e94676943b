// The local ops by eye, where by_eye.txt cannot write them: formulas and rounding points of the
// specification, section 2.
#include "engine/ops/local_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "engine/numeric/detail/functions.h"
#include "tests/engine/written_values.h"

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

TEST(Layernorm, TakesTheMeanOverTheWholeE) {
  const Torus torus(2, 1, 1);
  const Sharded mu = divide_by(values("B", {1}, {8}, torus), 4, one());
  EXPECT_EQ(mu.f32(), (Chips{{2}, {2}}));
  EXPECT_EQ(divide_by(values("B", {1}, {1}), 3, one()).f32()[0][0], static_cast<float>(1.0 / 3.0));
}

TEST(Elementwise, RoundWhereTheSpecificationSays) {
  const float third = 1.0F / 3.0F;
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
  EXPECT_LT(gelu(values("B", {1}, {-8}), one()).f32()[0][0], 0.0F);
  EXPECT_LT(gelu_erf(values("B", {1}, {-8}), one()).f32()[0][0], 0.0F);
  // swish of a large negative number vanishes and does not become NaN.
  EXPECT_EQ(swish32(-200.0F), -0.0F);
  EXPECT_EQ(exp32(0.0F), 1.0F);
}

// In the field a scale is an unknown constant of its name; a scale of 1 is none.
TEST(Elementwise, ScalesInTheFieldAreConstantsOfTheirNames) {
  const auto field = std::make_shared<const Field>(FieldSetting{});
  Array<FieldElement> t({3});
  for (std::size_t i = 0; i < 3; ++i) t.data[i] = field->integer(static_cast<std::int64_t>(i) + 5);
  const Sharded of = shard(t, Layout::parse("B"), kOne, field);
  const auto scaled = [&](float s, const char* name) {
    return scale_by(of, s, one(), name).field().values[0];
  };
  const auto own = scaled(1.0F, "embed_scale");
  const auto twice = scaled(2.0F, "embed_scale"), other = scaled(2.0F, "logit_scale");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(own[i], t.data[i]);
    EXPECT_EQ(twice[i], field->multiply(t.data[i], field->constant("constant embed_scale")));
    EXPECT_EQ(other[i], field->multiply(t.data[i], field->constant("constant logit_scale")));
    EXPECT_NE(twice[i], other[i]);
  }
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
}

TEST(Append, RoundsWhatItAppendsToACacheOfBf16AndNothingElse) {
  const float third = 1.0F / 3.0F;
  const Sharded cache = values("BMKQ", {1, 1, 1, 2}, {third, 2});
  const Sharded t = values("BLKQ", {1, 1, 1, 2}, {third, -third});
  const Sharded pos = integers("BL", {1, 1}, {1});
  for (const std::optional<NumberFormat> kept :
       {std::optional<NumberFormat>(), std::optional(NumberFormat::f32)})
    EXPECT_EQ(append(cache, t, pos, one(), kept).f32(), (Chips{{third, 2, third, -third}}));
  EXPECT_EQ(append(cache, t, pos, one(), NumberFormat::bf16).f32(),
            (Chips{{third, 2, 0x1.56p-2F, -0x1.56p-2F}}));
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

}  // namespace
}  // namespace shardproof
