// What the formulas of a pass say, against the ledger of the very programs that the engine runs.
#include "engine/cost/work/work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "engine/program/count.h"
#include "engine/run/plan_types.h"
#include "golden/cases/cases.h"
#include "tests/engine/cost/rounding.h"
#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

/// The ledgers of one pass of a run: of a layer, and of embedding, head and sampling together.
struct PassLedgers {
  Ledger layer;
  std::vector<Ledger> ends;
};

PassLedgers ledgers_of(const RunPlan& plan, const PassPlan& pass) {
  const PhasePrograms& programs = plan.programs(pass.phase);
  const auto of = [&](const Program& program) {
    Findings findings(Findings::Until::first);
    const ValueTypes types =
        check(program, plan.placed, programs.torus, {pass.batch(), pass.L, pass.cached}, findings);
    EXPECT_TRUE(findings.all().empty());
    return count(program, types, programs.torus, plan.source_case.numerics, plan.source_case.model);
  };
  return {of(programs.layer), {of(programs.embed), of(programs.head), of(programs.sample)}};
}

/// What the ledgers of a part count that the formulas say otherwise; empty if nothing.
std::string difference(const PartWork& work, const std::vector<Ledger>& ledgers) {
  double flops = 0.0;
  std::size_t at = 0;
  for (const Ledger& ledger : ledgers) {
    flops += static_cast<double>(ledger.flops()) / ledger.chips;
    for (const StepCost& step : ledger.steps) {
      if (!is_collective(step.kind)) continue;
      if (at == work.traffic.size()) return step.step + ": no traffic";
      const Traffic& t = work.traffic[at++];
      if (t.step != step.step || t.kind != step.kind || t.axes != step.axes ||
          t.group != step.group)
        return step.step + ": another collective, " + t.step;
      if (t.elements * ledger.chips != static_cast<double>(step.moved))
        return step.step + ": moved";
      if (t.sent_bytes * ledger.chips != static_cast<double>(step.moved * step.wire_bytes))
        return step.step + ": bytes";
      if (t.buffer_bytes != static_cast<double>(step.buffer * step.wire_bytes))
        return step.step + ": buffer";
    }
  }
  if (at != work.traffic.size()) return "traffic that no step has";
  return work.flops() == flops ? "" : "flops";
}

/// Runs whose ends are greedy and whose layers read one cache, of tables and dims as they are.
bool has_formulas(const RunPlan& plan) {
  const Case& c = plan.source_case;
  return !c.prefix.given() && plan.placed == c.model && c.prefill.program() == nullptr &&
         c.decode.program() == nullptr && c.sampling == Sampling{};
}

/// The drawn cases that have formulas, with each of their passes.
void for_drawn_passes(std::uint64_t seed, std::uint64_t cases,
                      const std::function<void(const RunPlan&, const PassPlan&)>& visit) {
  int visited = 0;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const RunPlan plan = cases::draw_plan(seed, i);
    if (!has_formulas(plan)) continue;
    for (const Passes::Group& group : plan.passes.groups())
      for (const std::int64_t pass : {group.first, group.last}) visit(plan, plan.passes.at(pass));
    ++visited;
  }
  EXPECT_GT(visited, static_cast<int>(cases / 5));
}

Pass pass_of(const PassPlan& pass) { return {pass.phase, pass.batch(), pass.L, pass.cached}; }

const Strategy& strategy_of(const RunPlan& plan, Phase phase) {
  return phase == Phase::decode ? plan.source_case.decode : plan.source_case.prefill;
}

TEST(Work, IsWhatTheLedgerCountsInEveryPassOfDrawnCases) {
  for_drawn_passes(15, 300, [](const RunPlan& plan, const PassPlan& pass) {
    const Case& c = plan.source_case;
    const Work work =
        work_of(c.model, c.numerics, c.torus, strategy_of(plan, pass.phase), pass_of(pass));
    const PassLedgers ledgers = ledgers_of(plan, pass);
    EXPECT_EQ(difference(work.layer, {ledgers.layer}), "") << print_case(c) << " " << pass.name;
    EXPECT_EQ(difference(work.ends, ledgers.ends), "") << print_case(c) << " " << pass.name;
    EXPECT_EQ(work.chips, c.torus.chips());
    EXPECT_EQ(work.layers, c.model.layers);
  });
}

TEST(Work, OfFormulasMadeForAnotherPassIsTheSameWhereTheyHold) {
  int others = 0;
  for_drawn_passes(16, 200, [&](const RunPlan& plan, const PassPlan& pass) {
    const Case& c = plan.source_case;
    Pass like = pass_of(pass);
    like.M = like.M == 0 ? 3 : 0;
    like.B *= 7;  // no torus of a drawn case has an axis that 7 would divide anew
    like.L *= pass.phase == Phase::decode ? 1 : 11;
    const WorkFormulas formulas(c.model, c.numerics, c.torus, strategy_of(plan, pass.phase), like);
    if (!formulas.hold_for(pass_of(pass))) return;
    ++others;
    const Work work = formulas.at(pass_of(pass));
    const PassLedgers ledgers = ledgers_of(plan, pass);
    EXPECT_EQ(difference(work.layer, {ledgers.layer}), "") << print_case(c) << " " << pass.name;
    EXPECT_EQ(difference(work.ends, ledgers.ends), "") << print_case(c) << " " << pass.name;
  });
  EXPECT_GT(others, 50);
}

/// Pairs of a new position and one that a causal mask lets it see, one by one.
double pairs_seen(std::int64_t tokens, std::int64_t cached) {
  double pairs = 0.0;
  for (std::int64_t query = cached; query < cached + tokens; ++query)
    for (std::int64_t key = 0; key < cached + tokens; ++key) pairs += key <= query ? 1.0 : 0.0;
  return pairs;
}

TEST(Work, SeesTheTriangleWhateverTheChunks) {
  for (const std::int64_t tokens : {1, 2, 3, 7, 16})
    for (const std::int64_t cached : {0, 1, 5, 12})
      EXPECT_EQ((Pass{Phase::prefill, 1, tokens, cached}.seen()), pairs_seen(tokens, cached));
  // A prompt of 17 behind a prefix of 4, whole and in uneven chunks.
  double chunks = 0.0;
  std::int64_t cached = 4;
  for (const std::int64_t tokens : {5, 1, 9, 2}) {
    chunks += Pass{Phase::prefill, 1, tokens, cached}.seen();
    cached += tokens;
  }
  EXPECT_EQ(chunks, (Pass{Phase::prefill, 1, 17, 4}.seen()));
  // A decode step sees all that is cached, and itself; a square of 2^20 is not rounded.
  EXPECT_EQ((Pass{Phase::decode, 1, 1, 2047}.seen()), 2048.0);
  EXPECT_EQ((Pass{Phase::prefill, 1, 1 << 20, 0}.seen()), 0x1p39 + 0x1p19);
}

/// What no run does without, of the ledger's steps: attention's by the mask, of contractions those
/// that have a weight.
double needed_of(const Program& program, const ValueTypes& types, const RunPlan& plan,
                 const PassPlan& pass) {
  const Ledger ledger = count(program, types, plan.programs(pass.phase).torus,
                              plan.source_case.numerics, plan.source_case.model);
  const double square = static_cast<double>(pass.L * (pass.cached + pass.L));
  double needed = 0.0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const auto flops = static_cast<double>(ledger.steps.at(i).flops);
    const bool weighs = std::any_of(op.args.begin(), op.args.end(), [&](const std::string& arg) {
      return program.declared(arg).role.kind == Role::Kind::weight;
    });
    if (is_attention(op.kind))
      needed += flops / square * pairs_seen(pass.L, pass.cached);
    else if (weighs)
      needed += flops;
  }
  return needed / ledger.chips;
}

TEST(Work, NeedsWhatTheCausalMaskLeavesOfTheLedger) {
  for_drawn_passes(17, 200, [](const RunPlan& plan, const PassPlan& pass) {
    const Case& c = plan.source_case;
    const Work work =
        work_of(c.model, c.numerics, c.torus, strategy_of(plan, pass.phase), pass_of(pass));
    const PhasePrograms& programs = plan.programs(pass.phase);
    Findings findings(Findings::Until::first);
    const auto needed = [&](const Program& program) {
      return needed_of(program,
                       check(program, plan.placed, programs.torus,
                             {pass.batch(), pass.L, pass.cached}, findings),
                       plan, pass);
    };
    const std::string text = print_case(c) + " " + pass.name;
    EXPECT_TRUE(
        equal_but_for_rounding(work.layer.needed_flops, needed(programs.layer), kOperationsOfAPass))
        << text;
    EXPECT_TRUE(
        equal_but_for_rounding(work.ends.needed_flops, needed(programs.head), kOperationsOfAPass))
        << text;
  });
}

/// By eye: PaLM's parallel block on 2x2x3, one decode step of 12 rows behind 5 positions.
TEST(Work, OfAWeightStationaryLayerIsThePapers) {
  const ModelConfig model = parse_model("palm-tiny");  // E=96 F=384 H=24 K=1 Q=8
  const Torus torus = Torus::parse("2x2x3");
  Numerics bf16;
  bf16.act = NumberFormat::bf16;
  bf16.weights = NumberFormat::bf16;
  const Work work =
      work_of(model, bf16, torus, Strategy::parse("ws2d:batch"), {Phase::decode, 12, 1, 5});
  // Of each of 12 rows: wq and wo 96·24·8, three FFN matrices 96·384, of which each chip has 1/12;
  // wk and wv 96·8, of which it has a block of E, for the rows of its y and z; and its block of the
  // sum of squares, a contraction with ones.
  EXPECT_EQ(work.layer.matmul_flops, 2.0 * 12 * (2 * 96 * 24 * 8 + 3 * 96 * 384) / 12 +
                                         2.0 * (12 / 6) * 2 * (96 / 2) * 8 + 2.0 * 12 * (96 / 2));
  EXPECT_EQ(work.layer.attention_flops, 4.0 * 12 * 6 * 24 * 8 / 12);
  EXPECT_EQ(work.layer.cache_bytes, 2.0 * 2 * 12 * 6 * 8 / 12);
  EXPECT_EQ(work.layer.cache_reads, work.layer.cache_bytes);
  // The chip's half of wk and wv and of the norm's gain; the rows of RoPE's tables are not counted.
  EXPECT_EQ(work.layer.weight_reads,
            2.0 * (2 * 96 * 24 * 8 + 3 * 96 * 384) / 12 + 2.0 * 2 * 96 * 8 / 2 + 4.0 * 96 / 2);
  EXPECT_EQ(work.layer.weight_bytes, work.layer.weight_reads + 4.0 * 96 / 2) << "the whole gain";
  // The table V·E, 1/12 of it, the gain of the last norm, and RoPE's tables, cos and sin.
  EXPECT_EQ(work.ends.weight_bytes, 2.0 * 264 * 96 / 12 + 4.0 * 96 + 2 * 4.0 * 2048 * 4);
}

TEST(Work, KeepsEmbeddingsBesideInt8MatricesAsBf16) {
  const ModelConfig tied = parse_model("palm-tiny"), untied = parse_model("palm-tiny,tied=false");
  const Torus torus = Torus::parse("2x2x3");
  const auto ends = [&](const ModelConfig& model, NumberFormat weights) {
    Numerics numerics;
    numerics.act = NumberFormat::bf16;
    numerics.weights = weights;
    return work_of(model, numerics, torus, Strategy::parse("ws2d:batch"), {Phase::decode, 12, 1, 5})
        .ends;
  };
  const double vectors = 4.0 * 96 + 2 * 4.0 * 2048 * 4, table = 264.0 * 96 / 12;
  for (const auto& [weights, bytes] :
       {std::pair{NumberFormat::f32, 4.0}, {NumberFormat::bf16, 2.0}, {NumberFormat::int8, 2.0}}) {
    EXPECT_EQ(ends(tied, weights).weight_bytes, bytes * table + vectors);
    EXPECT_EQ(ends(tied, weights).weight_reads, bytes * table + 4.0 * 96 / 2);
    EXPECT_EQ(ends(untied, weights).weight_bytes, bytes * 2 * table + vectors);
    EXPECT_EQ(ends(untied, weights).weight_reads, bytes * table + 4.0 * 96 / 2);
  }
}

TEST(Work, RefusesWhatIsNoPassAndPassesThatItsFormulasAreNotOf) {
  const ModelConfig model = parse_model("palm-tiny");
  const Torus torus = Torus::parse("2x2x3");
  const Strategy batch = Strategy::parse("ws2d:batch");
  for (const Pass& pass : {Pass{Phase::decode, 0, 1, 5}, Pass{Phase::decode, 12, 0, 5},
                           Pass{Phase::decode, 12, 1, -1}})
    EXPECT_EQ(label_of([&] { work_of(model, {}, torus, batch, pass); }), "work_c1");
  EXPECT_EQ(label_of([&] {
              work_of(model, {}, torus, batch, {Phase::decode, 6, 1, 5});
            }),
            "strategy_c4");
  const WorkFormulas formulas(model, {}, torus, Strategy::parse("ws2d:heads"),
                              {Phase::decode, 12, 1, 5});
  EXPECT_TRUE(formulas.hold_for({Phase::decode, 24, 1, 900}));
  EXPECT_FALSE(formulas.hold_for({Phase::decode, 7, 1, 5}));
  EXPECT_EQ(label_of([&] { formulas.at({Phase::decode, 7, 1, 5}); }), "work_c2");
}

}  // namespace
}  // namespace shardproof::cost
