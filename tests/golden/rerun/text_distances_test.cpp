// Models that are texts, made again: in f64 as far from the exact regime as that rounds, line by
// line; in less as far as its roundings take it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "golden/rerun/distances.h"
#include "golden/rerun/exact.h"
#include "tests/golden/rerun/asked.h"
#include "tests/golden/text/text_trace.h"
#include "weights/text/writer.h"

namespace shardproof::rerun {
namespace {

const std::string kRun = "batch=2 prompt=4 chunk=3 seed=2 ";
ExactCase text_case(const ModelText& text, const std::string& keys) {
  return ExactCase(make_plan(
      case_with_text(text, "torus=1x1x1 prefill=ws1d:heads decode=ws1d:heads " + kRun + keys)));
}
/// The text that a model of keys is written as.
ModelText text_of_keys(const std::string& keys) {
  return parse_model_text(text_of_model(parse_case(line_of(keys)).model));
}

/// Of every line of every pass and layer.
std::vector<RequestedValue> all_lines(const ExactCase& c) {
  std::vector<RequestedValue> all;
  for (const std::string& pass : c.answer().passes)
    for (const CheckpointSpec& spec : checkpoint_specs(c.config()))
      for (std::int64_t layer = 0; layer < (spec.per_layer ? c.config().layers : 1); ++layer)
        if (!spec.integer && c.answer().checkpoints.contains(checkpoint_id(pass, layer, spec.name)))
          all.push_back(c.asked(pass, layer, spec.name));
  return all;
}

void expect_the_model(const ExactCase& c, const std::string& about) {
  std::vector<RequestedValue> asked = all_lines(c);
  ASSERT_GT(asked.size(), 30U) << about;
  for (RequestedValue& value : asked) value.left_out.clear();  // padding is 0 on both sides
  constexpr int kRuns = 8;                                     // of both forms of functions
  const auto found = c.distances_of(asked, {NumberFormat::f64}, kRuns, 7);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    ASSERT_EQ(found[i].size(), kRuns) << about << " " << asked[i].id;
    const bool coarse = about.find("cache=bf16") != std::string::npos;
    for (const double d : found[i])
      EXPECT_LT(d, coarse ? 3e-2 : 128 * 0x1p-24) << about << " " << asked[i].id;
  }
}

TEST(RerunOfTexts, IsTheModelOfKeysLineByLine) {
  for (const char* keys :
       {"", ",norm=layernorm,bias=all", ",ffn=geglu", ",ffn=gelu", ",ffn=gelu-erf", ",rope=alibi",
        ",rope=interleaved,rotary=0.5", ",tied=false,unembed_bias=true,logit_scale=0.3",
        ",softmax=base2", ",cache=bf16", " block=serial"})
    expect_the_model(text_case(text_of_keys(keys), ""), keys);
}

TEST(RerunOfTexts, IsTheModelOfAnyTextAndRows) {
  for (const char* text : {"llama-3", "gpt-2", "gemma-2", "cohere", "qwen3", "experts"})
    for (const char* keys :
         {"", "lengths=4,2", "weights=int8", "prefix=2:2", "prefix=2:1 lengths=4,3"})
      if (std::string(text) != "experts" || std::string(keys).find("prefix") == std::string::npos)
        expect_the_model(text_case(small_text(text), keys), fmt::format("{} {}", text, keys));
}

/// Each arithmetic is further from exact than the one with more digits, and no further than the
/// rounding of each of a few hundred ops, all of them to one side, would take it.
TEST(RerunOfTexts, InLessIsNear) {
  for (const char* text : {"llama-3", "gemma-2"}) {
    const ExactCase f32 = text_case(small_text(text), ""),
                    bf16 = text_case(small_text(text), "act=bf16");
    for (const double d : f32.distances_of(f32.last_logits(), {NumberFormat::f32}, 4)) {
      EXPECT_GT(d, 0.0) << text;
      EXPECT_LT(d, 512 * 0x1p-24) << text;
    }
    for (const Places& places : {spec_places(), hf_places(), any_places()})
      for (const double d : bf16.distances_of(bf16.last_logits(), {NumberFormat::bf16, places}, 4))
        EXPECT_LT(d, 512 * 0x1p-9) << text;
    // Rounded to nearest where the exact regime rounds, most numbers are the same.
    for (const double d :
         bf16.distances_of(bf16.last_logits(), {NumberFormat::bf16, any_places()}, 4))
      EXPECT_GT(d, 0x1p-9) << text;
  }
}

/// Where `rounding` is open, runs round at other places; where it is not, only sums differ.
TEST(RerunOfTexts, DrawsThePlacesThatAreOpen) {
  const ExactCase c = text_case(small_text("llama-3"), "act=bf16");
  const RequestedValue embed = c.asked("prefill.c0", -1, "embed"),
                       norm = c.asked("prefill.c0", 0, "norm");
  const auto kinds = [&](const RequestedValue& asked, const Places& places) {
    const std::vector<double> d = c.distances_of(asked, {NumberFormat::bf16, places}, 16);
    return std::set<double>(d.begin(), d.end()).size();
  };
  EXPECT_EQ(kinds(embed, any_places()), 1U);
  EXPECT_LE(kinds(norm, spec_places()), 2U);
  EXPECT_GT(kinds(norm, any_places()), kinds(norm, spec_places()));
}

TEST(RerunOfTexts, DependsOnSeedAndRunAloneAndOnNoThread) {
  const ExactCase c = text_case(small_text("gemma-2"), "");
  const auto of = [&](std::uint64_t seed, int threads) {
    Threads pool(threads);
    return distances({c.weights(), c.plan.passes, c.ids}, {c.last_logits()}, 8, seed, pool)[0];
  };
  const std::vector<double> one = of(1, 1);
  EXPECT_EQ(one, of(1, 3));
  EXPECT_NE(one, of(2, 1));
  EXPECT_GT(std::set<double>(one.begin(), one.end()).size(), 2U);
}

TEST(RerunOfTexts, SumsThatAreSentRoundedAreFurther) {
  const ExactCase c = text_case(small_text("llama-3"), "");
  const auto most = [&](const Arithmetic& arithmetic) {
    const std::vector<double> d = c.distances_of(c.last_logits(), arithmetic, 8);
    return *std::max_element(d.begin(), d.end());
  };
  const double none = most({});
  EXPECT_GT(most({.wire_roundings = 1}), 100 * none);
  EXPECT_GT(most({.sums = NumberFormat::bf16}), 100 * none);
  EXPECT_LT(most({.wire_roundings = 3, .wire = NumberFormat::f64}), 10 * none);
}

/// Most numbers are rounded to nearest as in the exact regime; by chance half of them are not.
TEST(RerunOfTexts, ByChanceIsAsFarAsAllRoundingsAre) {
  const ExactCase c = text_case(text_of_keys(",cache=bf16"), "");
  const RequestedValue early = c.asked("prefill.c0", 0, "out");
  const auto most = [&](bool by_chance) {
    const std::vector<double> d = c.distances_of(early, {.by_chance = by_chance}, 16);
    return *std::max_element(d.begin(), d.end());
  };
  EXPECT_GT(most(true), 2 * most(false));
  EXPECT_LT(most(true), 0.1);
}

/// Caches of bf16 round otherwise in some runs by chance alone, so that they are coarse.
TEST(RerunOfTexts, RoundCoarselyWhereALineRounds) {
  const auto coarse = [](const ModelText& text, const Arithmetic& arithmetic) {
    return rounds_coarsely(arithmetic, text_case(text, "").config());
  };
  EXPECT_FALSE(coarse(small_text("llama-3"), {}));
  EXPECT_TRUE(coarse(small_text("llama-3"), {.values = NumberFormat::bf16}));
  EXPECT_TRUE(coarse(text_of_keys(",cache=bf16"), {}));
}

/// A run ends where the text's tables of positions do, or an id is not known.
TEST(RerunOfTexts, OfWhatNoRunMakesThereIsNothing) {
  ExactCase c = text_case(small_text("llama-3"), "");
  Threads threads(1);
  const RequestedValue first = c.asked("prefill.c0", 0, "out"), last = c.last_logits();
  const auto lacks = [&](const RequestedValue& asked) {
    return distances({c.weights(), c.plan.passes, c.ids}, {asked}, 2, 1, threads)[0].empty();
  };
  EXPECT_FALSE(lacks(last));
  EXPECT_TRUE(lacks({"decode.1.layer0.none", last.exact}));
  c.ids.at("decode.1").data[1] = 12;  // V
  EXPECT_TRUE(lacks(last));
  EXPECT_FALSE(lacks(first));
  std::vector<PassPlan> passes;
  for (std::int64_t i = 0; i < c.plan.passes.size(); ++i) passes.push_back(c.plan.passes.at(i));
  for (PassRows& group : passes[0].rows) group.start = 6;  // of tables of 8 positions
  c.plan.passes = Passes(passes);
  EXPECT_TRUE(lacks(first));
}

/// The exact values of a text over tokens that its own logits would not give.
TEST(ExactOfTexts, OfOtherIdsIsWhatARunOverThemIsNear) {
  ExactCase c = text_case(text_of_keys(""), "");
  const oracle::Answer own =
      exact_of({c.weights(), c.plan.passes, c.ids, {}}, c.plan.source_case.numerics, 1);
  for (const auto& [id, tensor] : c.answer().checkpoints)
    EXPECT_EQ(own.checkpoints.at(id).data, tensor.data) << id;
  const RequestedValue before = c.last_logits();
  c.ids.at("decode.1").data = {7, 9};
  const oracle::Answer answer =
      exact_of({c.weights(), c.plan.passes, c.ids, {}}, c.plan.source_case.numerics, 1);
  const RequestedValue after{before.id, &answer.checkpoints.at(before.id)};
  EXPECT_GT(c.distances_of(before, {NumberFormat::f64}, 1)[0], 0.1);
  EXPECT_LT(c.distances_of(after, {NumberFormat::f64}, 1)[0], 3e-6);
}

}  // namespace
}  // namespace shardproof::rerun
