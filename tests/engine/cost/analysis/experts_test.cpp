#include "engine/cost/analysis/experts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <string>

#include "tests/engine/cost/cases.h"
#include "tests/engine/cost/rounding.h"
#include "tests/weights/random_model.h"

namespace shardproof::cost {
namespace {

const Chip& tpu() { return find_chip("tpu-v4"); }

TEST(Experts, AreCountedByHand) {
  // E=96, F=384, gated: 3·96·384 = 110592 weights an expert.
  const ModelConfig model = parse_model("palm-tiny");
  const ExpertsCost cost = experts_cost(model, {8, 2, 1.25, 4, 64}, {1.0, 2.0}, tpu());
  EXPECT_EQ(cost.router_flops, 2.0 * 96 * 8 * 64);
  EXPECT_EQ(cost.dense_flops, 2.0 * 110592 * 64);
  EXPECT_EQ(cost.token_flops, 2.0 * cost.dense_flops);
  EXPECT_EQ(cost.slots, 20);  // 1.25·2·64/8
  EXPECT_EQ(cost.slot_flops, 2.0 * 110592 * 20 * 8);
  EXPECT_EQ(cost.weight_bytes, 110592.0 * 2);
  // Each chip sends the 160/4 slots of its tokens, 96 elements of 2 bytes, but for a quarter.
  EXPECT_EQ(cost.all_to_all_bytes, 40 * 96 * 2.0 * 3 / 4);
  EXPECT_DOUBLE_EQ(cost.both_ways_seconds, 2 * cost.all_to_all_bytes / 270e9);
  EXPECT_EQ(experts_cost(model, {8, 2, 1.25, 1, 64}, {}, tpu()).all_to_all_bytes, 0.0);
}

TEST(Experts, TheChipsKnobScalesTheAllToAll) {
  Chip chip = tpu();
  chip.all_to_all = 2.5;
  const ModelConfig model = parse_model("palm-tiny");
  const Experts experts{8, 2, 1.0, 4, 64};
  EXPECT_DOUBLE_EQ(experts_cost(model, experts, {}, chip).all_to_all_bytes,
                   2.5 * experts_cost(model, experts, {}, tpu()).all_to_all_bytes);
}

TEST(Experts, AFewTokensTouchAFewExperts) {
  const ModelConfig model = parse_model("palm-tiny");
  EXPECT_DOUBLE_EQ(experts_cost(model, {64, 2, 1.0, 1, 1}, {}, tpu()).touched, 2.0);
  EXPECT_DOUBLE_EQ(experts_cost(model, {4, 1, 1.0, 1, 2}, {}, tpu()).touched, 4.0 * 7 / 16);
  // None has a chance of e^-3174 to be left out, which rounds to nothing.
  EXPECT_EQ(experts_cost(model, {64, 2, 1.0, 1, 100000}, {}, tpu()).touched, 64.0);
}

RC_GTEST_PROP(Experts, OneExpertIsTheDenseFfn, ()) {
  const ModelConfig model = draw_model(40);
  const std::int64_t tokens = *rc::gen::inRange(1, 1000);
  const ExpertsCost cost = experts_cost(model, {1, 1, 1.0, 1, tokens}, {}, tpu());
  RC_ASSERT(cost.token_flops == cost.dense_flops);
  RC_ASSERT(cost.slot_flops == cost.dense_flops);
  RC_ASSERT(cost.slots == tokens);
  RC_ASSERT(cost.touched == 1.0);
  double dense = 0.0;
  for (const Product& one : products_of(model, {1, tokens, tokens}))
    if (one.name == "w_gate" || one.name == "w_up" || one.name == "w_out")
      dense += one.flops() / static_cast<double>(model.layers);
  RC_ASSERT(cost.dense_flops == dense);
}

RC_GTEST_PROP(Experts, SlotsHoldAllTokensOfAnEvenRouting, ()) {
  const std::int64_t experts = *rc::gen::inRange(1, 65),
                     top = *rc::gen::inRange<std::int64_t>(1, experts + 1);
  const std::int64_t tokens = *rc::gen::inRange(1, 1000);
  const ExpertsCost cost =
      experts_cost(parse_model("palm-tiny"), {experts, top, 1.0, 1, tokens}, {}, tpu());
  RC_ASSERT(cost.slots * experts >= top * tokens);
  RC_ASSERT((cost.slots - 1) * experts < top * tokens);
  RC_ASSERT(cost.slots <= tokens);
  RC_ASSERT(cost.touched <= static_cast<double>(experts));
}

/// Each token touches those of its experts that none before it did.
RC_GTEST_PROP(Experts, TouchedOnesAreTheSumOverTokens, ()) {
  const std::int64_t experts = *rc::gen::inRange(1, 65),
                     top = *rc::gen::inRange<std::int64_t>(1, experts + 1);
  const int tokens = *rc::gen::inRange(1, 200);
  const ExpertsCost cost =
      experts_cost(parse_model("palm-tiny"), {experts, top, 1.0, 1, tokens}, {}, tpu());
  const double left = static_cast<double>(experts - top) / static_cast<double>(experts);
  double touched = 0.0, chance = 1.0;
  for (int token = 0; token < tokens; ++token) {
    touched += static_cast<double>(top) * chance;
    chance *= left;
  }
  // The sum: two operations and an addition a token. With p = top/experts the cost has p, log1p,
  // tokens·, expm1 and experts·, 7 operations. What p is off by is in the logarithm times
  // p/((1 − p)·|log(1 − p)|) ≤ 1/(1 − p) ≤ experts, and in expm1(y) no more, for |y/(e^-y − 1)| ≤ 1
  // below 0.
  const int operations = 3 * tokens + static_cast<int>(experts) + 7;
  RC_ASSERT(equal_but_for_rounding(cost.touched, touched, operations));
}

TEST(Experts, RefusesWhatCannotBe) {
  expect_refusals("analysis/refused.txt", "experts", [](const CaseLine& line) {
    experts_cost(parse_model("palm-tiny"),
                 {line.whole(0), line.whole(1), line.number(2), line.whole(3), line.whole(4)}, {},
                 find_chip(line.text(5)));
  });
}

}  // namespace
}  // namespace shardproof::cost
