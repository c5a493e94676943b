// What make_plan makes of a case: its passes, and the programs of each phase.
#include "engine/run/plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/run/plan_types.h"
#include "tests/engine/strategy_sample.h"
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
  EXPECT_EQ(plan.source_case, parse_case("torus=2x1x3 batch=6 prompt=7 chunk=3 gen=4"));
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

// ---- prefixes that rows share ----

const std::string kPrefixed = "torus=4x2x3 batch=24 prompt=9 gen=2 ";

TEST(Plan, HasNoProgramsOfPrefixesWhereThereAreNone) {
  const RunPlan plan = plan_of(kPrefixed + "prefill=ws2d:heads decode=ws2d:batch");
  EXPECT_EQ(plan.prefix.layer, Program());
  EXPECT_EQ(plan.prefix_hand_over, Program());
  EXPECT_EQ(plan.prefix_to_decode, Program());
  EXPECT_EQ(plan.prefill.prefix_cache, Layout());
}

TEST(Plan, MakesThePrefixesProgramsByThePrefillsTable) {
  const std::string strategies = "prefill=wg-xyz:batch decode=ws2d:batch ";
  const RunPlan plan = plan_of(kPrefixed + strategies + "prefix=5:24");
  EXPECT_EQ(&plan.programs(Phase::prefix), &plan.prefix);
  // Those of a run of which they are the batch.
  EXPECT_EQ(texts(plan.prefix), texts(plan_of("torus=4x2x3 batch=24 prompt=5 gen=2 "
                                              "prefill=wg-xyz:batch")
                                          .prefill));
  EXPECT_EQ(plan.prefix.prefix_cache, Layout());
  // Of the others only the layers differ from those of a run without.
  const RunPlan plain = plan_of(kPrefixed + strategies);
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const auto own = texts(plan.programs(phase)), all = texts(plain.programs(phase));
    for (std::size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[i] == all[i], i != 1) << own[i];
    EXPECT_NE(own[1].find("attend_prefix("), std::string::npos);
  }
}

TEST(Plan, PrefixesThatTheTableDoesNotDivideAreOnEveryChip) {
  const std::string line = kPrefixed + "prefill=wg-xyz:batch decode=ws2d:heads prefix=5:";
  EXPECT_EQ(plan_of(line + "24").prefix.residual.to_string(), "B_zyxLE");
  for (const char* N : {"1", "5", "12"}) {
    const RunPlan plan = plan_of(line + N);
    EXPECT_EQ(plan.prefix.residual.to_string(), "BLE") << N;
    EXPECT_EQ(plan.prefix.cache.to_string(), "BMKQ") << N;
    EXPECT_EQ(print_program(plan.prefix.layer).find("B_"), std::string::npos) << N;
    // The rows' own phases have the table as it is.
    EXPECT_EQ(plan.prefill.residual.to_string(), "B_zyxLE") << N;
    // Weights are resident where the prefill has them, so that they are placed once.
    for (const ValueDecl& input : plan.prefix.layer.inputs)
      if (input.role.kind == Role::Kind::weight)
        for (const ValueDecl& other : plan.prefill.layer.inputs)
          if (other.role == input.role) {
            EXPECT_EQ(input.layout, other.layout);
          }
    // What partitioned() shows is what runs.
    EXPECT_EQ(partitioned(plan.source_case, plan.source_case.prefill, Phase::prefix).layer,
              plan.prefix.layer);
  }
}

TEST(Plan, HandsThePrefixesCachesOverTwice) {
  const RunPlan plan = plan_of(kPrefixed +
                               "prefill=wg-xyz:batch decode=ws1d:batch-x model=palm-tiny,K=6 "
                               "prefix=5:12");
  EXPECT_EQ(plan.prefix.cache.to_string(), "BMKQ");
  EXPECT_EQ(plan.prefill.prefix_cache.to_string(), "N_zyTKQ");
  EXPECT_EQ(plan.decode.prefix_cache.to_string(), "N_xTK_zyQ");
  const auto leads = [](const Program& program, const std::string& from, const Layout& to) {
    ASSERT_EQ(program.inputs.size(), 2U);
    ASSERT_EQ(program.outputs.size(), 2U);
    for (const ValueDecl& input : program.inputs) EXPECT_EQ(input.layout.to_string(), from);
    for (const std::string& output : program.outputs)
      EXPECT_EQ(program.declared(output).layout, to);
    EXPECT_FALSE(program.ops.empty());
  };
  leads(plan.prefix_hand_over, "NTKQ", plan.prefill.prefix_cache);
  leads(plan.prefix_to_decode, "N_zyTKQ", plan.decode.prefix_cache);
  // Where they lie alike nothing moves; nor is there a second one where nothing is decoded.
  const RunPlan alike = plan_of(kPrefixed + "prefill=wg-xyz:batch decode=ws2d:batch prefix=5:24");
  EXPECT_TRUE(alike.prefix_hand_over.ops.empty());
  EXPECT_TRUE(alike.prefix_to_decode.ops.empty());
  const RunPlan alone = plan_of(
      "torus=4x2x3 batch=24 prompt=9 gen=1 prefill=wg-xyz:batch decode=ws1d:batch prefix=5:12");
  EXPECT_TRUE(alone.prefix_to_decode.ops.empty());
}

/// Whether every chip that has a row in attention has the row's prefix there.
bool has_prefixes_of_its_rows(const PhasePrograms& phase, const SharedPrefix& prefix,
                              std::int64_t batch) {
  const Axes rows = phase.cache.axes('B'), cut = phase.prefix_cache.axes('N');
  const std::int64_t of_chip = batch / phase.torus.size(rows);
  const std::int64_t held = prefix.rows / phase.torus.size(cut);
  for (int chip = 0; chip < phase.torus.chips(); ++chip) {
    const std::int64_t first = phase.torus.block(chip, rows) * of_chip;
    const std::int64_t begin = phase.torus.block(chip, cut) * held;
    for (std::int64_t row = first; row < first + of_chip; ++row)
      if (const std::int64_t of = prefix.of_row(row, batch); of < begin || of >= begin + held)
        return false;
  }
  return true;
}

TEST(Plan, OfEveryTableIsWellTypedAndAChipHasThePrefixesOfItsRows) {
  int cut = 0, whole = 0, all_chips = 0;
  for (const char* size : {"1x1x1", "4x2x3", "3x1x5", "2x2x2"}) {
    const Torus torus = Torus::parse(size);
    const std::int64_t n = torus.chips();
    const ModelConfig model =
        with_dims(parse_model("palm-tiny,layers=1,Q=4"), n, n, n, n % 3 == 0 ? 3 : 1, n);
    for (const Strategy& strategy : all_strategies()) {
      Case c = run_under(strategy, model, torus);
      c.chunk = c.prompt;
      c.prefix.length = c.prompt;
      c.prompt *= 2;
      c.batch *= 2;
      c.gen = 2;
      const std::int64_t planes = 2 * std::int64_t{torus.size(Axis::z)};
      for (const std::int64_t N : {std::int64_t{1}, std::int64_t{2}, planes, c.batch}) {
        if (N > c.batch) continue;
        c.prefix.rows = N;
        SCOPED_TRACE(print_case(c));
        RunPlan plan;
        ASSERT_EQ(message_of([&] { plan = make_plan(c); }), "");
        EXPECT_EQ(message_of([&] { check(plan); }), "");
        for (const Phase phase : {Phase::prefill, Phase::decode}) {
          EXPECT_TRUE(has_prefixes_of_its_rows(plan.programs(phase), c.prefix, c.batch));
          const int blocks = torus.size(plan.programs(phase).prefix_cache.axes('N'));
          ++(blocks > 1 ? cut : whole);
        }
        // Rows are cut, and of the passes over prefixes nothing is.
        if (!plan.prefill.residual.axes('B').empty() && plan.prefix.residual.axes('B').empty())
          ++all_chips;
      }
    }
  }
  EXPECT_GT(cut, 50);
  EXPECT_GT(whole, 50);
  EXPECT_GT(all_chips, 20);
  // It is seen: prefixes cut by another axis than the rows.
  PhasePrograms wrong = plan_of(kPrefixed + "prefill=ws2d:batch prefix=5:6").prefill;
  EXPECT_TRUE(has_prefixes_of_its_rows(wrong, {5, 6}, 24));
  wrong.prefix_cache = Layout::parse("N_yTKQ");
  EXPECT_FALSE(has_prefixes_of_its_rows(wrong, {5, 6}, 24));
}

TEST(Plan, OfShippedTablesSomeCutPrefixesAndSomeDoNot) {
  for (const std::string kind : {"ws1d", "ws2d", "wg"}) {
    int cut = 0, whole = 0;
    for (const Strategy& strategy : all_strategies()) {
      const LayoutLine* const line = strategy.table().find("prefix");
      if (!strategy.to_string().starts_with(kind)) continue;
      const Layout attend = strategy.table().find("attend")->steps[0].layout;
      // A line where there is something to say.
      EXPECT_EQ(line != nullptr, !attend.axes('B').empty()) << strategy.to_string();
      if (line != nullptr) ++(line->steps[0].layout.axes('N').empty() ? whole : cut);
    }
    EXPECT_GT(cut, 0) << kind;
    EXPECT_GT(whole, 0) << kind;
  }
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
