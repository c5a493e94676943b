#include "engine/cost/analysis/pipeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/cost/graph/graph.h"
#include "tests/engine/cost/cases.h"

namespace shardproof::cost {
namespace {

PipelineSetting setting(const char* model, std::int64_t tensor, const Pipeline& pipeline,
                        std::int64_t batch) {
  PipelineSetting s;
  s.model = parse_model(model);
  s.batch = batch;
  s.context = 128;
  s.tensor = tensor;
  s.pipeline = pipeline;
  return s;
}

TEST(Pipeline, HasThePublishedBubble) {
  EXPECT_EQ((Pipeline{3, 4, 1}.slots()), 6.0);
  EXPECT_DOUBLE_EQ((Pipeline{3, 4, 1}.bubble()), 2.0 / 6.0);
  EXPECT_DOUBLE_EQ((Pipeline{4, 1, 1}.bubble()), 3.0 / 4.0);
  EXPECT_EQ((Pipeline{1, 7, 5}.bubble()), 0.0);
  // One microbatch of a decode waits for the whole pipeline, step after step.
  EXPECT_DOUBLE_EQ((Pipeline{3, 1, 64}.bubble()), 2.0 / 3.0);
  // As many microbatches as stages leave only what fills and drains it.
  EXPECT_DOUBLE_EQ((Pipeline{3, 3, 64}.bubble()), 2.0 / (64.0 * 3.0 + 2.0));
}

/// The slots of a schedule made by hand: each part begins as soon as its stage is free and what it
/// needs is done.
double simulated(const Pipeline& p) {
  const auto m = static_cast<std::size_t>(p.microbatches);
  std::vector<double> free(static_cast<std::size_t>(p.stages), 0.0), done(m, 0.0);
  for (std::int64_t step = 0; step < p.steps; ++step)
    for (std::size_t batch = 0; batch < m; ++batch)
      for (double& stage : free) {
        done[batch] = std::max(done[batch], stage) + 1.0;
        stage = done[batch];
      }
  return *std::max_element(done.begin(), done.end());
}

RC_GTEST_PROP(Pipeline, SlotsAreThoseOfASchedule, ()) {
  const Pipeline p{*rc::gen::inRange(1, 9), *rc::gen::inRange(1, 9), *rc::gen::inRange(1, 9)};
  RC_ASSERT(p.slots() == simulated(p));
  RC_ASSERT(p.bubble() >= 0.0);
  RC_ASSERT((p.stages == 1) == (p.bubble() == 0.0));
}

// MT-NLG in three stages of eight A100, as FasterTransformer runs it.
TEST(Pipeline, OfMtNlgInThreeStages) {
  const Chip& chip = find_chip("a100-80g");
  const PipelineCost cost = pipeline_cost(setting("mt-nlg-530b", 8, {3, 4, 1}, 32), chip);
  EXPECT_EQ(cost.chips, 24);
  EXPECT_EQ(cost.layers_of_stage, 35);
  EXPECT_DOUBLE_EQ(cost.bubble, 1.0 / 3.0);
  const ModelConfig model = parse_model("mt-nlg-530b");
  const double table = static_cast<double>(model.V * model.E);
  const double weights = (matrix_parameters(model) - table) / 3.0 + table;
  EXPECT_DOUBLE_EQ(cost.weight_bytes, weights * 2.0 / 8.0);
  EXPECT_TRUE(cost.fits(chip));
  // Without stages the eight chips would have to hold all of it.
  EXPECT_FALSE(pipeline_cost(setting("mt-nlg-530b", 8, {1, 4, 1}, 32), chip).fits(chip));
  // K and V of 35 layers for 128 positions of 32 sequences, 16 of the 128 heads on each chip.
  EXPECT_DOUBLE_EQ(cost.cache_bytes, 2.0 * 35 * 32 * 128 * 16 * 160 * 2.0);
  // Two all-reduces a layer of 8 rows, and one transfer of them.
  EXPECT_DOUBLE_EQ(cost.slot.communication, 35 * 2 * 2.0 * (8 * 20480 * 2.0) * 7 / 8 / 300e9);
  EXPECT_DOUBLE_EQ(cost.transfer, 8 * 20480 * 2.0 / 300e9);
  EXPECT_DOUBLE_EQ(cost.additive, 6.0 * (cost.slot.additive() + cost.transfer));
  EXPECT_LT(cost.lower, cost.additive);
}

// One head of keys and values is on every chip whole, as `plan --only ws1d:heads` has it: 8 chips
// of palm-8b hold 2284371968 bytes of bf16 weights there, less 33 norms of 4096 and RoPE tables of
// 8096 x 256, both as f32 and whole on every chip.
TEST(Pipeline, KeepsOneHeadOfKeysWholeOnEachChip) {
  const PipelineCost cost =
      pipeline_cost(setting("palm-8b", 8, {1, 1, 1}, 1), find_chip("a100-80g"));
  // Queries and attention's output, three matrices of the FFN, and the tied table, over 8 chips.
  const double shared = 32.0 * (2.0 * 4096 * 16 * 256 + 3.0 * 4096 * 16384) + 256128.0 * 4096;
  const double keys = 32.0 * 2.0 * 4096 * 256;
  EXPECT_DOUBLE_EQ(cost.weight_bytes, 2.0 * (shared / 8.0 + keys));
  EXPECT_DOUBLE_EQ(cost.weight_bytes, 2284371968.0 - 4.0 * (33.0 * 4096 + 8096.0 * 256));
  // A token is multiplied with each of them once; scores and values are shared by the query heads.
  const double attention = 32.0 * 4.0 * 16 * 256 * 128 / 8.0;
  EXPECT_DOUBLE_EQ(cost.slot.compute, (2.0 * (shared / 8.0 + keys) + attention) / 312e12);
  EXPECT_DOUBLE_EQ(cost.slot.memory, (cost.weight_bytes + cost.cache_bytes) / 2039e9);
}

TEST(Pipeline, CutsKeysIntoWholeHeads) {
  // 6 heads of keys over 4 chips: half of them on each, since 4 do not divide them.
  const Chip& chip = find_chip("a100-80g");
  const PipelineCost two = pipeline_cost(setting("palm-8b,H=24,K=6", 2, {1, 1, 1}, 1), chip);
  const PipelineCost four = pipeline_cost(setting("palm-8b,H=24,K=6", 4, {1, 1, 1}, 1), chip);
  EXPECT_EQ(four.cache_bytes, two.cache_bytes);
  EXPECT_EQ(four.cache_bytes, 32.0 * 2.0 * 3 * 256 * 128 * 2);
  // What 4 chips hold less than 2 is a quarter of all but the keys' matrices.
  const double others = 32.0 * (2.0 * 4096 * 24 * 256 + 3.0 * 4096 * 16384) + 256128.0 * 4096;
  EXPECT_DOUBLE_EQ(two.weight_bytes - four.weight_bytes, 2.0 * others / 4.0);
}

TEST(Pipeline, OneStageHasBothTables) {
  const Chip& chip = find_chip("a100-80g");
  const PipelineCost one = pipeline_cost(setting("llama-7b", 4, {1, 1, 1}, 1), chip);
  const PipelineCost two = pipeline_cost(setting("llama-7b", 4, {2, 1, 1}, 1), chip);
  const ModelConfig model = parse_model("llama-7b");
  const double table = static_cast<double>(model.V * model.E);
  const double layers = matrix_parameters(model) - 2.0 * table;
  EXPECT_DOUBLE_EQ(one.weight_bytes, 2.0 * (layers + 2.0 * table) / 4.0);
  EXPECT_DOUBLE_EQ(two.weight_bytes, 2.0 * (layers / 2.0 + table) / 4.0);
  // Of the embedding a pass reads few rows.
  EXPECT_DOUBLE_EQ(one.slot.memory,
                   (2.0 * (layers + table) / 4.0 + one.cache_bytes) / chip.hbm_bandwidth);
}

/// Beside int8 matrices embedding and unembedding are bf16.
TEST(Pipeline, KeepsEmbeddingsBesideInt8MatricesAsBf16) {
  const auto weights = [](NumberFormat type, std::int64_t stages) {
    PipelineSetting s = setting("llama-7b", 4, {stages, 1, 1}, 1);
    s.weights = type;
    return pipeline_cost(s, find_chip("a100-80g")).weight_bytes;
  };
  const double tables = 32000.0 * 4096 / 4;
  for (const std::int64_t stages : {1, 2})
    EXPECT_DOUBLE_EQ(
        weights(NumberFormat::bf16, stages) - 2.0 * weights(NumberFormat::int8, stages),
        stages == 1 ? -2.0 * 2 * tables : -2.0 * tables);
}

TEST(Pipeline, OverlapsWhatTheCausalMaskLeaves) {
  PipelineSetting s = setting("palm-8b", 8, {2, 2, 1}, 2);
  s.tokens = s.context = 8192;
  const PipelineCost cost = pipeline_cost(s, find_chip("a100-80g"));
  const double masked = 16.0 * 4.0 * 16 * 256 * (8192.0 * 8191 / 2) / 8 / 312e12;
  EXPECT_NEAR((cost.slot.compute - cost.slot.needed) / masked, 1.0, 1e-12);
  EXPECT_DOUBLE_EQ(cost.lower, 3.0 * cost.slot.needed);
  EXPECT_DOUBLE_EQ(cost.additive, 3.0 * (cost.slot.additive() + cost.transfer));
}

TEST(Pipeline, OneInterconnectJoinsTheChipsOfAStage) {
  const Chip& chip = find_chip("a100-80g");
  EXPECT_TRUE(pipeline_cost(setting("mt-nlg-530b", 8, {2, 4, 1}, 32), chip).joined);
  const PipelineCost more = pipeline_cost(setting("mt-nlg-530b", 8, {3, 4, 1}, 32), chip);
  EXPECT_FALSE(more.joined);
  // From machine to machine as fast as within one.
  EXPECT_DOUBLE_EQ(more.transfer, 8 * 20480 * 2.0 / chip.sends(1));
}

TEST(Pipeline, AStageAloneSendsNothing) {
  const PipelineCost cost =
      pipeline_cost(setting("palm-8b", 1, {1, 1, 1}, 1), find_chip("orin-nano-8g"));
  EXPECT_EQ(cost.slot.communication, 0.0);
  EXPECT_EQ(cost.slot.hops, 0.0);
  EXPECT_EQ(cost.transfer, 0.0);
  EXPECT_EQ(cost.bubble, 0.0);
}

TEST(Pipeline, HopsCountWhereTheChipHasThem) {
  const PipelineCost cost =
      pipeline_cost(setting("palm-8b", 4, {2, 1, 1}, 1), find_chip("tpu-v4-axes"));
  // A parallel block has one all-reduce, of 2·(4 − 1) steps.
  EXPECT_DOUBLE_EQ(cost.slot.hops, 16 * 6 * 1e-6);
  EXPECT_DOUBLE_EQ(cost.transfer, 4096 * 2.0 / 90e9 + 1e-6);
}

/// What is named is legal in every way: it divides, and is joined.
TEST(Pipeline, RefusesWhatCannotBe) {
  expect_refusals("analysis/refused.txt", "pipeline", [](const CaseLine& line) {
    PipelineSetting s = setting(line.text(0).c_str(), line.whole(1),
                                {line.whole(2), line.whole(3), 1}, line.whole(4));
    s.tokens = line.whole(5);
    pipeline_cost(s, find_chip(line.text(6)));
  });
}

}  // namespace
}  // namespace shardproof::cost
