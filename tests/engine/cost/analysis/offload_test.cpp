#include "engine/cost/analysis/offload.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>

#include "engine/cost/formulas/embeddings.h"
#include "engine/cost/plan/plan.h"
#include "tests/engine/cost/cases.h"

namespace shardproof::cost {
namespace {

OffloadSetting setting(const char* model, std::int64_t context) {
  OffloadSetting s;
  s.model = parse_model(model);
  s.context = context;
  return s;
}

/// Bytes of all weights of a model, one by one.
double resting(const ModelConfig& model, NumberFormat type) {
  double bytes = 0.0;
  for (const WeightRow& row : all_weights()) {
    if (!has_weight(model, row.name, type)) continue;
    double elements = row.per_layer ? static_cast<double>(model.layers) : 1.0;
    for (const std::int64_t extent : shape_of(row.dims, model))
      elements *= static_cast<double>(extent);
    bytes += elements * bytes_of_weight(row, type);
  }
  return bytes;
}

/// Cos and sin of so many positions and pairs.
double rope_tables(std::int64_t positions, std::int64_t pairs) {
  return 2.0 * 4.0 * static_cast<double>(positions * pairs);
}

TEST(Offload, OfLlama70bOnOneA100) {
  const Chip& chip = find_chip("a100-80g");
  const OffloadCost cost = offload_cost(setting("llama-2-70b", 2048), chip);
  const double weights = resting(parse_model("llama-2-70b"), NumberFormat::bf16);
  EXPECT_EQ(cost.weight_bytes, weights);
  EXPECT_EQ(cost.cache_bytes, 2.0 * 80 * 8 * 128 * 2048 * 2);
  EXPECT_EQ(cost.resident_bytes, chip.hbm - cost.cache_bytes);
  EXPECT_EQ(cost.host_bytes, weights - cost.resident_bytes);
  // The table of the embedding is not the unembedding: of it rows are read, as of RoPE's, and
  // nothing is streamed.
  EXPECT_EQ(cost.streamed_bytes, cost.host_bytes - 2.0 * 32000 * 8192 - rope_tables(4096, 64));
  EXPECT_EQ(cost.host_seconds, cost.streamed_bytes / 32e9);
  EXPECT_EQ(cost.seconds(), cost.host_seconds);
  EXPECT_GT(cost.fraction(), 0.6);
  EXPECT_LT(cost.fraction(), 0.63);
}

TEST(Offload, StreamsATableThatIsMultipliedWith) {
  OffloadSetting s = setting("llama-2-70b,tied=true", 2048);
  const OffloadCost cost = offload_cost(s, find_chip("a100-80g"));
  EXPECT_GT(cost.host_bytes, 0.0);
  EXPECT_EQ(cost.streamed_bytes, cost.host_bytes - rope_tables(4096, 64));
}

TEST(Offload, AnEmbeddingAloneInTheHostIsNotStreamed) {
  Chip chip = find_chip("a100-80g");
  chip.hbm = 2.0 * 6.7e9;  // the weights are 6.738 billion, 0.131 of them the embedding
  const OffloadCost cost = offload_cost(setting("llama-7b", 1), chip);
  EXPECT_GT(cost.host_bytes, 0.0);
  EXPECT_LT(cost.host_bytes, 2.0 * 32000 * 4096);
  EXPECT_EQ(cost.streamed_bytes, 0.0);
  EXPECT_EQ(cost.seconds(), cost.seconds_without());
  EXPECT_LT(cost.fraction(), 1.0);
}

TEST(Offload, WhatFitsIsNotStreamed) {
  const OffloadCost cost = offload_cost(setting("llama-7b", 2048), find_chip("a100-80g"));
  EXPECT_EQ(cost.streamed_bytes, 0.0);
  EXPECT_EQ(cost.host_seconds, 0.0);
  EXPECT_EQ(cost.fraction(), 1.0);
  EXPECT_EQ(cost.seconds(), cost.seconds_without());
  // Even where there is no host.
  EXPECT_EQ(offload_cost(setting("phi-2", 2048), find_chip("orin-nano-8g")).host_seconds, 0.0);
}

/// Where no context fits, a batch that does; where none does, neither; a prefill's context has its
/// new tokens, and what the host cannot hold has room beside the caches.
TEST(Offload, RefusesWhatCannotBe) {
  expect_refusals("analysis/refused.txt", "offload", [](const CaseLine& line) {
    OffloadSetting s = setting(line.text(0).c_str(), line.whole(3));
    s.batch = line.whole(1);
    s.tokens = line.whole(2);
    Chip chip = find_chip(line.text(4));
    if (!line.text(5).empty()) chip.host = line.number(5);
    offload_cost(s, chip);
  });
}

/// What a plan says of the same model, types and pass on one chip.
Candidate planned(const OffloadSetting& s, const Chip& chip) {
  PlanRequest r;
  r.model = s.model;
  r.chip = chip;
  r.chip.hbm = 1e18;  // whatever it holds
  r.tori = {Torus::parse("1x1x1")};
  r.batches = {s.batch};
  r.weights = {s.weights};
  r.phase = s.tokens == 1 ? PlanPhase::decode : PlanPhase::prefill;
  r.context = s.context;
  r.prompt = s.tokens;
  r.gen = 1;
  r.alone = true;
  r.strategies = {Strategy::parse("ws2d:batch")};
  const Plan plan = make_plan(r);
  EXPECT_EQ(plan.choices.size(), 1U);
  return plan.choices.at(0).main();
}

TEST(Offload, AgreesWithAPlanOnOneChip) {
  Chip chip = find_chip("a100-80g");
  chip.host = 1e13;
  for (const char* model : {"llama-7b", "llama-7b,tied=true", "llama-2-70b", "palm-8b", "gpt-3",
                            "phi-2", "yi-6b", "gpt-3,rope=alibi"})
    for (const NumberFormat weights : {NumberFormat::f32, NumberFormat::bf16, NumberFormat::int8})
      for (const auto& [tokens, context] : {std::pair{1, 2048}, {1, 1}, {1024, 1024}}) {
        OffloadSetting s = setting(model, context);
        s.weights = weights;
        s.tokens = tokens;
        s.batch = 3;
        const OffloadCost cost = offload_cost(s, chip);
        const Candidate plan = planned(s, chip);
        const std::string text = fmt::format("{} {} {}", model, to_string(weights), tokens);
        EXPECT_EQ(cost.weight_bytes, plan.memory.weights) << text;
        EXPECT_DOUBLE_EQ(cost.weight_bytes, resting(s.model, weights)) << text;
        EXPECT_EQ(cost.cache_bytes, plan.memory.caches) << text;
        EXPECT_EQ(cost.memory_seconds, plan.seconds().memory) << text;
        EXPECT_EQ(cost.compute_seconds, plan.seconds().needed) << text;
        EXPECT_EQ(cost.seconds_without(), plan.lower) << text;
        EXPECT_GE(plan.seconds().compute, cost.compute_seconds) << text;
        // What the host holds and need not stream is what products do not read.
        Chip none = chip;
        none.hbm = cost.cache_bytes * 1.001;
        const OffloadCost hosted = offload_cost(s, none);
        EXPECT_NEAR(hosted.streamed_bytes + hosted.resident_bytes + cost.cache_bytes,
                    plan.seconds().memory * chip.hbm_bandwidth, 1.0)
            << text;
      }
}

/// A plan that fits needs no host: it asks for live values besides.
TEST(Offload, StreamsNothingOfAPlanThatFits) {
  const OffloadSetting s = setting("llama-7b", 2048);
  const Candidate plan = planned(s, find_chip("a100-80g"));
  Chip chip = find_chip("a100-80g");
  chip.hbm = plan.memory.total();
  EXPECT_EQ(offload_cost(s, chip).fraction(), 1.0);
  chip.hbm = plan.memory.weights + plan.memory.caches - 1.0;
  EXPECT_LT(offload_cost(s, chip).fraction(), 1.0);
}

TEST(Offload, KeepsEmbeddingsBesideInt8MatricesAsBf16) {
  OffloadSetting s = setting("llama-7b", 2048);
  s.weights = NumberFormat::int8;
  const double tables = 2.0 * 2 * 32000 * 4096,
               matrices = 32.0 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008);
  const double norms = 4.0 * 65 * 4096, scales = 4.0 * 32 * (3 * 4096 + 2 * 11008 + 2 * 4096);
  EXPECT_EQ(offload_cost(s, find_chip("a100-80g")).weight_bytes,
            matrices + tables + norms + scales + rope_tables(2048, 64));
}

TEST(Offload, CountsTheCausalTriangle) {
  OffloadSetting whole = setting("llama-7b", 4096), first = setting("llama-7b", 1024),
                 rest = setting("llama-7b", 4096);
  whole.tokens = 4096;
  first.tokens = 1024;
  rest.tokens = 3072;
  const Chip& chip = find_chip("a100-80g");
  const auto compute = [&](const OffloadSetting& s) {
    return offload_cost(s, chip).compute_seconds;
  };
  const double matrices = 32.0 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008), table = 32000.0 * 4096;
  const double flops =
      2.0 * matrices * 4096 + 2.0 * table + 32 * 4.0 * 32 * 128 * (4096.0 * 4097 / 2);
  EXPECT_NEAR(compute(whole) * 312e12 / flops, 1.0, 1e-14);
  // Chunks together see as much, and make the logits of one row more.
  EXPECT_NEAR((compute(first) + compute(rest) - compute(whole)) / (2.0 * table / 312e12), 1.0,
              1e-8);
}

RC_GTEST_PROP(Offload, TheBytesAreAllTheWeights, ()) {
  Chip chip = find_chip("a100-80g");
  chip.hbm = *rc::gen::inRange(2, 40) * 1e9;
  const auto context = *rc::gen::inRange<std::int64_t>(1, 2000);
  const OffloadCost cost = offload_cost(setting("llama-7b", context), chip);
  RC_ASSERT(cost.resident_bytes + cost.host_bytes == cost.weight_bytes);
  RC_ASSERT(cost.streamed_bytes <= cost.host_bytes);
  RC_ASSERT(cost.resident_bytes + cost.cache_bytes <= chip.hbm);
  RC_ASSERT((cost.streamed_bytes == 0.0) == (cost.host_seconds == 0.0));
  RC_ASSERT(cost.seconds() >= cost.seconds_without());
}

}  // namespace
}  // namespace shardproof::cost
