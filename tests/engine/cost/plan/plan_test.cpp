// The choice among strategies: the paper's own cases, and properties of every plan.
#include "engine/cost/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "engine/cost/graph/graph.h"
#include "engine/cost/plan/fitted_model.h"
#include "engine/cost/plan/tori.h"
#include "engine/cost/plan/volume_comparison.h"
#include "tests/engine/cost/rounding.h"
#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

PlanRequest request(const char* torus = "4x4x4", PlanPhase phase = PlanPhase::decode,
                    std::int64_t batch = 64, NumberFormat weights = NumberFormat::int8) {
  PlanRequest r;
  r.model = parse_model("palm-540b");
  r.chip = find_chip("tpu-v4");
  r.tori = {Torus::parse(torus)};
  r.batches = {batch};
  r.weights = {weights};
  r.phase = phase;
  r.strategies = all_strategies();
  return r;
}

/// A model small enough that every layout fits.
PlanRequest small_request(PlanPhase phase, std::int64_t batch) {
  PlanRequest r = request("2x2x3", phase, batch);
  r.model = parse_model("palm-tiny");
  r.prompt = 24;
  r.context = 48;
  r.gen = 24;
  return r;
}

bool begins(const Candidate& one, const char* text) {
  return one.strategy.to_string().starts_with(text);
}

/// Axes that the table's attention shards the batch over.
bool attends_over_batch(const Candidate& one) {
  return !one.strategy.table().find("attend")->steps.front().layout.axes('B').empty();
}

TEST(Plan, ChoosesThePapersDecodeAndLowLatencyPrefill) {
  for (const PlanPhase phase : {PlanPhase::decode, PlanPhase::prefill, PlanPhase::both}) {
    const bool decodes = phase == PlanPhase::decode;
    PlanRequest r = request("4x4x4", phase, decodes ? 64 : 1);
    r.prompt = phase == PlanPhase::both ? 1984 : 2048;
    r.gen = decodes ? 1 : 64;
    const Plan plan = make_plan(r);
    ASSERT_FALSE(plan.choices.empty());
    const Candidate& best = plan.choices[0].main();
    EXPECT_TRUE(begins(best, "ws2d:")) << best.strategy.to_string();
    EXPECT_EQ(attends_over_batch(best), decodes) << best.strategy.to_string();
  }
}

/// By its own volumes the paper gathers all weights; all that is sent speaks for two axes.
TEST(Plan, ChoosesThePapersHighThroughputPrefillByThePapersVolumes) {
  PlanRequest r = request("4x4x4", PlanPhase::prefill, 512, NumberFormat::bf16);
  r.volumes = Volumes::paper;
  const Plan plan = make_plan(r);
  ASSERT_FALSE(plan.choices.empty());
  const Candidate& best = plan.choices[0].main();
  EXPECT_TRUE(begins(best, "wg-xyz")) << best.strategy.to_string();
  EXPECT_EQ(best.passes(), 1);
  EXPECT_LE(best.memory.total(), r.chip.hbm);
  const std::vector<VolumeOf> volumes = compare_volumes(plan, best);
  const auto of = [&](const char* name) {
    return *std::find_if(volumes.begin(), volumes.end(),
                         [&](const VolumeOf& v) { return v.strategy.to_string() == name; });
  };
  EXPECT_TRUE(volumes.front().strategy.to_string().starts_with("wg-xy:"));
  EXPECT_NEAR(of("wg-xy:natural").full, 2.88e9, 0.01e9);
  EXPECT_NEAR(of("wg-xyz:natural").full, 4.47e9, 0.01e9);
  EXPECT_EQ(of("wg-xyz:natural").paper, 2.0 * 18432 * 73728);
  EXPECT_EQ(of("wg-xy:natural").paper, 2.0 * 18432 * 73728 / 4 + 2.0 * 1048576 * 18432 / 16);
  r.volumes = Volumes::full;
  EXPECT_TRUE(begins(make_plan(r).choices[0].main(), "wg-xy:"));
}

/// A layout that rests its weights otherwise than the decode needs them has them twice.
TEST(Plan, CountsWeightsTwiceThatPhasesDoNotRestAlike) {
  PlanRequest r = request("4x4x4", PlanPhase::prefill, 1);
  r.strategies = {Strategy::parse("context-z:2d"), Strategy::parse("ws2d:heads")};
  r.model.layers = 40;  // of which the one needs 11.2 GB and the other 3.1 GB
  const auto strategies = [&] {
    std::set<std::string> names;
    for (const Choice& choice : make_plan(r).choices)
      names.insert(choice.prefill->strategy.to_string());
    return names;
  };
  r.chip.hbm = 12e9;
  r.alone = true;
  EXPECT_EQ(strategies().size(), 2U);
  r.alone = false;
  EXPECT_EQ(strategies(), std::set<std::string>{"ws2d:heads"});
}

TEST(Plan, PairsNeedTheMemoryOfBothPhases) {
  for (const Choice& choice : make_plan(small_request(PlanPhase::both, 24)).choices) {
    const Candidate &prefill = *choice.prefill, &decode = *choice.decode;
    std::set<std::string> weights;
    for (const auto& [weight, bytes] : prefill.resting) weights.insert(weight);
    double other = 0.0;
    for (const auto& [weight, bytes] : decode.resting)
      if (!weights.contains(weight)) other += bytes;
    EXPECT_EQ(prefill.memory.other_weights, other);
    // Each weight is a quotient, times the layers, in sums of all weights: of a layer's, of the
    // ends' and of those that the other phase has besides.
    const auto operations = static_cast<int>(prefill.resting.size() + decode.resting.size() + 4);
    EXPECT_TRUE(equal_but_for_rounding(prefill.memory.weights + prefill.memory.other_weights,
                                       decode.memory.weights + decode.memory.other_weights,
                                       operations));
    EXPECT_EQ(prefill.placed, decode.placed);
    EXPECT_EQ(prefill.torus, decode.torus);
    EXPECT_DOUBLE_EQ(choice.latency, prefill.estimate + 24 * decode.estimate);
    EXPECT_DOUBLE_EQ(choice.cost, 12 * choice.latency / (24.0 * (24 + 24)));
  }
}

TEST(Plan, RanksByTheGoal) {
  for (const Goal goal : {Goal::latency, Goal::cost}) {
    PlanRequest r = small_request(PlanPhase::decode, 1);
    r.batches = {1, 6, 24, 120};
    r.tori = all_tori(12);
    r.goal = goal;
    const Plan plan = make_plan(r);
    ASSERT_GT(plan.choices.size(), 100U);
    for (std::size_t i = 1; i < plan.choices.size(); ++i) {
      const Choice &a = plan.choices[i - 1], &b = plan.choices[i];
      EXPECT_LE(goal == Goal::latency ? a.latency : a.cost,
                goal == Goal::latency ? b.latency : b.cost);
    }
    EXPECT_EQ(plan.choices[0].batch(), goal == Goal::latency ? 1 : 120);
  }
}

TEST(Plan, PutsFirstWhatMeetsTheLatency) {
  PlanRequest r = small_request(PlanPhase::decode, 1);
  r.batches = {1, 24, 1200};
  r.goal = Goal::cost;
  const Plan all = make_plan(r);
  std::vector<double> latencies;
  for (const Choice& choice : all.choices) latencies.push_back(choice.latency);
  std::sort(latencies.begin(), latencies.end());
  r.latency = latencies[latencies.size() / 2];
  const Plan plan = make_plan(r);
  EXPECT_EQ(plan.met, latencies.size() / 2 + 1);
  double least = 1e300;
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    EXPECT_EQ(plan.choices[i].latency <= *r.latency, i < plan.met);
    if (i < plan.met) least = std::min(least, plan.choices[i].cost);
  }
  EXPECT_EQ(plan.choices[0].cost, least);
}

/// Of the bounds of a pass to the seconds of all: times the layers, plus the ends, times the
/// passes, and three sums of the four things that take time.
constexpr int kOperationsOfSeconds = 6;

/// Bounds hold the estimate from below; every term is one of theirs; what is chosen fits.
TEST(Plan, SaysWhatItsPartsSay) {
  for (const PlanPhase phase : {PlanPhase::prefill, PlanPhase::decode}) {
    PlanRequest r = small_request(phase, 24);
    r.tori = {Torus::parse("4x2x3"), Torus::parse("3x1x4"), Torus::parse("1x1x1")};
    for (const Choice& choice : make_plan(r).choices) {
      const Candidate& one = choice.main();
      EXPECT_LE(one.lower, one.additive);
      EXPECT_LE(one.additive, one.estimate);
      EXPECT_TRUE(
          equal_but_for_rounding(one.seconds().additive(), one.additive, kOperationsOfSeconds));
      EXPECT_LE(one.memory.total(), r.chip.hbm);
      EXPECT_EQ(choice.cost, one.chip_seconds_per_token());
      EXPECT_EQ(one.flops_utilization(1e9, 1e12),
                2e9 * one.tokens() / (one.torus.chips() * 1e12 * one.estimate));
      EXPECT_EQ(one.torus.chips() == 1, one.sent.empty()) << one.strategy.to_string();
    }
  }
}

/// A prefill without room for all rows takes them a part at a time: as few parts as fit.
TEST(Plan, TakesRowsAPartAtATimeForWantOfMemory) {
  PlanRequest r = request("4x4x4", PlanPhase::prefill, 512, NumberFormat::bf16);
  r.strategies = {Strategy::parse("ws2d:batch")};
  const Candidate one = make_plan(r).choices.at(0).main();
  EXPECT_GT(one.passes(), 1);
  EXPECT_EQ(one.passes() * one.pass.B, 512);
  EXPECT_LE(one.memory.total(), r.chip.hbm);
  EXPECT_TRUE(equal_but_for_rounding(one.additive, one.seconds().additive(), kOperationsOfSeconds));
  EXPECT_DOUBLE_EQ(one.additive, static_cast<double>(one.passes()) * one.bounds.additive());
  r.chip.hbm *= 4;
  EXPECT_EQ(make_plan(r).choices.at(0).main().passes(), 1);
}

TEST(Plan, PadsHeadsAsThePaper) {
  PlanRequest r = request();
  r.strategies = {Strategy::parse("ws2d:heads")};
  const Plan padded = make_plan(r);
  EXPECT_EQ(padded.choices.at(0).main().placed.H, 64);
  EXPECT_EQ(padded.parameters, matrix_parameters(r.model));
  r.pad_heads = false;
  const Plan plan = make_plan(r);
  EXPECT_TRUE(plan.choices.empty());
  ASSERT_EQ(plan.left_out.size(), 1U);
  EXPECT_EQ(plan.left_out[0].why, "H=48 is not divisible by XYZ=64");
  // Groups of heads stay whole: 24 heads in 6 groups, 16 chips on z and y.
  EXPECT_FALSE(
      heads_divide(Strategy::parse("dp"), parse_model("palm-tiny,K=6"), 26, Torus::parse("2x1x1")));
  EXPECT_TRUE(
      heads_divide(Strategy::parse("dp"), parse_model("palm-tiny,K=6"), 28, Torus::parse("2x1x1")));
  ModelConfig grouped = parse_model("palm-tiny,K=6");
  const Torus torus = Torus::parse("1x4x4");
  const std::int64_t heads = padded_heads(r.strategies[0], grouped, torus);
  EXPECT_EQ(heads, 32);
  EXPECT_EQ(fitted_model(grouped, heads, torus).K, 8);
  EXPECT_EQ(fitted_model(grouped, heads, torus).V, 272);
}

/// Threads and the order of tori change nothing.
TEST(Plan, IsTheSameWithThreads) {
  PlanRequest r = small_request(PlanPhase::both, 24);
  r.tori = all_tori(12);
  const Plan one = make_plan(r);
  r.threads = 3;
  const Plan three = make_plan(r);
  ASSERT_EQ(one.choices.size(), three.choices.size());
  for (std::size_t i = 0; i < one.choices.size(); ++i) {
    EXPECT_EQ(one.choices[i].latency, three.choices[i].latency);
    EXPECT_EQ(one.choices[i].torus(), three.choices[i].torus());
  }
}

std::string said(const PlanRequest& r) {
  return message_of([&] { require_choice(make_plan(r), r); });
}

TEST(Plan, RefusesWhatNothingMeetsAndNamesTheNearest) {
  EXPECT_EQ(said(request()), "");
  PlanRequest late = request();
  late.latency = 1e-3;
  EXPECT_NE(said(late).find("plan_c2: nothing has a latency of at most 1 ms; the least is 2"),
            std::string::npos)
      << said(late);
  PlanRequest large = request("2x2x4");
  EXPECT_NE(said(large).find("plan_c1: nothing fits"), std::string::npos) << said(large);
  EXPECT_NE(said(large).find("; 32 chips hold it"), std::string::npos) << said(large);
  large.tori = {Torus::parse("2x2x2")};
  EXPECT_NE(said(large).find("; 32 chips hold it"), std::string::npos) << said(large);
  PlanRequest odd = request("5x1x1");
  EXPECT_NE(said(odd).find("plan_c3"), std::string::npos) << said(odd);
  EXPECT_NE(said(odd).find("is not divisible by"), std::string::npos) << said(odd);
}

/// What is named is feasible: the nearest slice with the batch, and the nearest batch on the tori.
TEST(Plan, NamesWhatDividesWhereNothingDoes) {
  const auto number_behind = [](const std::string& text, const std::string& flag) {
    const auto at = text.find(flag);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + flag.size()));
  };
  for (const PlanPhase phase : {PlanPhase::prefill, PlanPhase::decode, PlanPhase::both}) {
    PlanRequest odd = request("5x1x1", phase, 8);
    odd.model = parse_model("palm-8b");
    odd.prompt = 512;
    odd.tori.push_back(Torus::parse("9x1x1"));
    const std::string text = said(odd);
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_EQ(number_behind(text, "--chips "), 4) << text;
    EXPECT_EQ(number_behind(text, "--batch "), 0) << "E divides by neither: " << text;
    odd.tori = slice_tori(4, odd.chip.min_axis);
    EXPECT_FALSE(make_plan(odd).choices.empty()) << text;
    PlanRequest rows = request("4x2x1", phase, 12);
    rows.model = odd.model;
    rows.prompt = 512;
    rows.strategies = {Strategy::parse("dp")};
    const std::string of_rows = said(rows);
    EXPECT_EQ(number_behind(of_rows, "--chips "), 4) << of_rows;
    EXPECT_EQ(number_behind(of_rows, "--batch "), 8) << of_rows;
    PlanRequest slice = rows;
    slice.tori = slice_tori(4, rows.chip.min_axis);
    EXPECT_FALSE(make_plan(slice).choices.empty()) << of_rows;
    rows.batches = {8};
    EXPECT_FALSE(make_plan(rows).choices.empty()) << of_rows;
  }
}

// Every part of a candidate's seconds, and what is needed of them, is of all its passes.
TEST(Candidate, SecondsAreOfAllPasses) {
  Candidate c;
  c.pass.B = 4;
  c.batch = 12;
  c.bounds.layers = 2;
  c.bounds.layer = {.compute = 1, .memory = 2, .communication = 4, .hops = 8, .needed = 0.5};
  c.bounds.ends = {.compute = 16, .memory = 32, .communication = 64, .hops = 128, .needed = 0.25};
  const Seconds all = c.seconds();
  EXPECT_EQ(all.compute, 3 * 18.0);
  EXPECT_EQ(all.memory, 3 * 36.0);
  EXPECT_EQ(all.communication, 3 * 72.0);
  EXPECT_EQ(all.hops, 3 * 144.0);
  EXPECT_EQ(all.needed, 3 * 1.25);
}

}  // namespace
}  // namespace shardproof::cost
