// What make_plan makes of a case: its passes, and the programs of each phase.
#include "engine/run/plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

RunPlan plan_of(const std::string& line) { return make_plan(parse_case(line)); }

std::vector<std::string> texts(const PhasePrograms& phase) {
  std::vector<std::string> all;
  for (const Program* program : {&phase.embed, &phase.layer, &phase.head, &phase.sample})
    all.push_back(print_program(*program));
  all.push_back(phase.residual.to_string() + " " + phase.cache.to_string() + " " +
                phase.torus.to_string());
  return all;
}

TEST(Plan, HasThePassesOfItsCase) {
  const RunPlan plan = plan_of("torus=2x1x3 batch=6 prompt=7 chunk=3 gen=4 prefill=ws2d:heads");
  EXPECT_EQ(plan.passes, Passes(6, 7, 3, 4));
  EXPECT_EQ(plan.given, parse_case("torus=2x1x3 batch=6 prompt=7 chunk=3 gen=4"));
}

TEST(Plan, HoldsTheProgramsOfBothPhasesOnTheirTorus) {
  const RunPlan plan = plan_of("torus=4x2x3 prefill=wg-xyz:batch decode=ws2d:heads gen=2");
  EXPECT_EQ(&plan.programs(Phase::prefill), &plan.prefill);
  EXPECT_EQ(&plan.programs(Phase::decode), &plan.decode);
  for (const Phase phase : {Phase::prefill, Phase::decode})
    EXPECT_EQ(plan.programs(phase).torus, Torus(4, 2, 3));
  EXPECT_NE(texts(plan.prefill), texts(plan.decode));
  // Each as a case that has it in both phases.
  EXPECT_EQ(texts(plan.prefill), texts(plan_of("torus=4x2x3 prefill=wg-xyz:batch gen=2").prefill));
  EXPECT_EQ(texts(plan.decode), texts(plan_of("torus=4x2x3 prefill=ws2d:heads gen=2").decode));
}

TEST(Plan, SharesTheProgramsOfAStrategyThatPrefillsAndDecodes) {
  for (const char* strategy : {"ws1d:heads", "ws2d:batch", "wg-xyz:batch"}) {
    const RunPlan plan = plan_of("torus=4x2x3 batch=24 gen=3 prefill=" + std::string(strategy));
    EXPECT_EQ(texts(plan.decode), texts(plan.prefill)) << strategy;
    EXPECT_TRUE(plan.hand_over.ops.empty()) << strategy;
  }
}

TEST(Plan, HasThePrefillsProgramsWhereNothingIsDecoded) {
  const std::string line = "torus=4x2x3 batch=24 prefill=wg-xyz:batch decode=ws2d:heads gen=";
  const RunPlan alone = plan_of(line + "1");
  EXPECT_EQ(texts(alone.decode), texts(alone.prefill));
  EXPECT_TRUE(alone.hand_over.ops.empty());
  EXPECT_NE(texts(plan_of(line + "2").decode), texts(alone.prefill));
}

TEST(Plan, GivesADecodeOfItsOwnToAPrefillThatShardsL) {
  const RunPlan plan = plan_of("torus=2x1x3 prefill=sp:1d decode=ws2d:heads gen=2");
  EXPECT_NE(plan.prefill.residual.to_string(), plan.decode.residual.to_string());
  EXPECT_EQ(label_of([] { plan_of("torus=2x1x3 prefill=sp:1d decode=sp:1d gen=2"); }),
            "strategy_c2");
  EXPECT_EQ(label_of([] { plan_of("torus=2x1x3 prefill=sp:1d decode=sp:1d gen=1"); }), "");
}

TEST(Plan, HandsTheCachesOverFromOnePhasesLayoutToTheOthers) {
  const RunPlan plan = plan_of("torus=4x2x3 batch=24 prefill=ws2d:heads decode=ws2d:batch gen=2");
  ASSERT_NE(plan.prefill.cache.to_string(), plan.decode.cache.to_string());
  ASSERT_EQ(plan.hand_over.inputs.size(), 2U);
  for (const ValueDecl& input : plan.hand_over.inputs) EXPECT_EQ(input.layout, plan.prefill.cache);
  ASSERT_EQ(plan.hand_over.outputs.size(), 2U);
  for (const std::string& output : plan.hand_over.outputs)
    EXPECT_EQ(plan.hand_over.declared(output).layout, plan.decode.cache);
  EXPECT_FALSE(plan.hand_over.ops.empty());
  // Two strategies that hold the caches alike.
  const RunPlan none = plan_of("torus=4x2x3 batch=24 prefill=ws1d:heads decode=ws2d:heads gen=2");
  ASSERT_EQ(none.prefill.cache, none.decode.cache);
  EXPECT_NE(texts(none.decode), texts(none.prefill));
  EXPECT_TRUE(none.hand_over.ops.empty());
}

TEST(Plan, SharesAUsersLayerThatIsBothPhases) {
  Case c = parse_case("torus=2x1x3 batch=6 gen=3");
  const Program layer = partitioned(c, c.prefill, Phase::prefill).layer;
  c.prefill = c.decode = Strategy(parse_program("layer", print_program(layer), "p.txt"));
  const RunPlan plan = make_plan(c);
  EXPECT_EQ(texts(plan.decode), texts(plan.prefill));
  EXPECT_EQ(print_program(plan.prefill.layer), print_program(layer));
}

}  // namespace
}  // namespace shardproof
