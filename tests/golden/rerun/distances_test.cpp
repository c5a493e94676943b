// The model made again is the model: in f64 it is as far from the exact regime as that rounds, with
// every key of a model and every kind of rows; and what is not the model is far from it.
#include "golden/rerun/distances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "golden/rerun/exact.h"
#include "tests/golden/rerun/asked.h"

namespace shardproof::rerun {
namespace {

const char* const kKeys[] = {"",
                             ",norm=layernorm,bias=all",
                             ",norm=layernorm,bias=all block=serial",
                             ",ffn=geglu",
                             ",ffn=gelu",
                             ",ffn=gelu-erf",
                             ",rope=alibi",
                             ",rope=interleaved,rotary=0.5",
                             ",rope=none",
                             ",tied=false,unembed_bias=true,logit_scale=0.3",
                             ",embed_scale=1.7",
                             " block=serial",
                             ",softmax=base2",
                             ",softmax=base2,rope=alibi,tied=false,unembed_bias=true",
                             ",softmax=base2,bias=qkv block=serial",
                             " lengths=4,2",
                             " lengths=3,4 block=serial",
                             " prefix=1:1",
                             " prefix=2:2 lengths=4,3",
                             ",rope=alibi prefix=2:1",
                             ",cache=bf16",
                             " weights=bf16",
                             " weights=int8",
                             " weights=int8 block=serial",
                             ",norm=layernorm,bias=all weights=int8"};

/// Most numbers are rounded to nearest as in the exact regime; by chance half of them are not.
TEST(Rerun, ByChanceIsAsFarAsAllRoundingsAre) {
  for (const char* keys : {" act=bf16", ",cache=bf16"}) {
    const ExactCase c(line_of(keys));
    const Arithmetic nearest{std::string_view(keys) == " act=bf16" ? NumberFormat::bf16
                                                                   : NumberFormat::f32};
    Arithmetic by_chance = nearest;
    by_chance.by_chance = true;
    EXPECT_TRUE(rounds_coarsely(nearest, c.weights().config()));
    const RequestedValue early = c.asked("prefill.c0", 0, "out");
    const auto most = [&](const Arithmetic& arithmetic) {
      const std::vector<double> d = c.distances_of(early, arithmetic);
      return *std::max_element(d.begin(), d.end());
    };
    EXPECT_GT(most(by_chance), 2 * most(nearest)) << keys;
    EXPECT_LT(most(by_chance), 0.1) << keys;
  }
  EXPECT_FALSE(rounds_coarsely({}, ExactCase(line_of("")).weights().config()));
}

/// Of every checkpoint that a run can be asked for, but those that no token has.
std::vector<RequestedValue> all_of(const ExactCase& c) {
  std::vector<RequestedValue> all;
  for (const std::string& pass : c.answer().passes)
    for (const CheckpointSpec& spec : checkpoint_specs(c.weights().config())) {
      const bool of_keys =
          spec.name == "score" || spec.name == "exp" || spec.name == "max" || spec.name == "denom";
      if (spec.integer || of_keys) continue;
      for (std::int64_t layer = 0; layer < (spec.per_layer ? 2 : 1); ++layer)
        all.push_back(c.asked(pass, layer, spec.name));
    }
  return all;
}

TEST(Rerun, InF64IsTheExactRegimeUpToItsRoundings) {
  for (const char* keys : kKeys) {
    const ExactCase c(line_of(keys));
    const std::vector<RequestedValue> asked = all_of(c);
    Threads threads(2);
    const auto found =
        distances({c.weights(), c.plan.passes, c.ids, {NumberFormat::f64}}, asked, 2, 7, threads);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      ASSERT_EQ(found[i].size(), 2U) << keys << " " << asked[i].id;
      // A cache of bf16 may round another way: half of its last digit of a large element.
      const bool coarse = std::string_view(keys).find("cache=bf16") != std::string_view::npos;
      EXPECT_LT(found[i][0], coarse ? 3e-2 : 3e-6) << keys << " " << asked[i].id;
    }
  }
}

TEST(Rerun, InF32AndLessIsNear) {
  for (const char* keys : kKeys) {
    const ExactCase c(line_of(keys));
    const ExactCase bf16(line_of(std::string(keys) + " act=bf16"));
    for (const double d : c.distances_of(c.last_logits(), {NumberFormat::f32}, 4))
      EXPECT_LT(d,
                std::string_view(keys).find("cache=bf16") == std::string_view::npos ? 1e-4 : 3e-2)
          << keys;
    for (const auto& places : {spec_places(), hf_places(), any_places()}) {
      for (const double d :
           bf16.distances_of(bf16.last_logits(), {NumberFormat::bf16, places}, 4)) {
        EXPECT_GT(d, 0.0) << keys;
        EXPECT_LT(d, 0.3) << keys;
      }
      for (const double d : c.distances_of(c.last_logits(), {NumberFormat::f16, places}, 4)) {
        EXPECT_GT(d, 1e-5) << keys;
        EXPECT_LT(d, 0.05) << keys;
      }
    }
  }
}

TEST(Rerun, DependsOnSeedAndRunAloneAndOnNoThread) {
  const ExactCase c(line_of(""));
  const auto of = [&](std::uint64_t seed, int threads) {
    Threads pool(threads);
    return distances({c.weights(), c.plan.passes, c.ids}, {c.last_logits()}, 8, seed, pool)[0];
  };
  const std::vector<double> one = of(1, 1);
  EXPECT_EQ(one, of(1, 3));
  EXPECT_NE(one, of(2, 1));
  EXPECT_GT(std::set<double>(one.begin(), one.end()).size(), 2U);
  // A value beside it changes nothing.
  Threads pool(1);
  const auto both = distances({c.weights(), c.plan.passes, c.ids},
                              {c.asked("decode.1", 0, "out"), c.last_logits()}, 8, 1, pool);
  EXPECT_EQ(both[1], one);
}

TEST(Rerun, WhatTravelsRoundedIsFurther) {
  const ExactCase c(line_of(""));
  const auto most = [&](const Arithmetic& arithmetic) {
    const std::vector<double> d = c.distances_of(c.last_logits(), arithmetic);
    return *std::max_element(d.begin(), d.end());
  };
  const double none = most({});
  const double once = most({.wire_roundings = 1});
  EXPECT_GT(once, 100 * none);
  EXPECT_GT(most({.wire_roundings = 7}), once);
  EXPECT_GT(most({.sums = NumberFormat::bf16}), once);
  EXPECT_LT(most({.wire_roundings = 3, .wire = NumberFormat::f64}), 10 * none);
}

TEST(Rerun, OfWhatNoRunMakesThereIsNothing) {
  ExactCase c(line_of(""));
  Threads threads(1);
  const RequestedValue first = c.asked("prefill.c0", 0, "out"), last = c.last_logits();
  const auto lacks = [&](const RequestedValue& asked) {
    return distances({c.weights(), c.plan.passes, c.ids}, {asked}, 2, 1, threads)[0].empty();
  };
  EXPECT_TRUE(lacks({"decode.1.layer0.score", &c.exact("decode.1.layer0.score")}));
  EXPECT_TRUE(lacks({"decode.9.logits", last.exact}));
  EXPECT_FALSE(lacks(first));
  c.ids.at("decode.1").data[1] = 24;  // V
  EXPECT_TRUE(lacks(last));
  EXPECT_FALSE(lacks(first));
  c.ids.erase("decode.1");
  EXPECT_TRUE(lacks(last));
  c.ids.at("prefill.c0").data[0] = -1;
  EXPECT_TRUE(lacks(first));
}

TEST(Exact, OfTheRunsOwnIdsIsItsAnswer) {
  for (const char* keys :
       {"", " lengths=4,2", " prefix=2:2 lengths=4,3", " weights=int8 act=bf16"}) {
    const ExactCase c(line_of(keys));
    const oracle::Answer answer =
        exact_of({c.weights(), c.plan.passes, c.ids, {}}, c.plan.source_case.numerics, 1);
    ASSERT_EQ(answer.checkpoints.size(), c.answer().checkpoints.size()) << keys;
    for (const auto& [id, tensor] : c.answer().checkpoints)
      EXPECT_EQ(answer.checkpoints.at(id).data, tensor.data) << keys << " " << id;
  }
}

TEST(Exact, OfOtherIdsIsWhatARunOverThemIsNear) {
  ExactCase c(line_of(" lengths=4,2"));
  const RequestedValue before = c.last_logits();
  c.ids.at("decode.1").data = {7, 9};
  const oracle::Answer answer =
      exact_of({c.weights(), c.plan.passes, c.ids, {}}, c.plan.source_case.numerics, 1);
  const RequestedValue after{before.id, &answer.checkpoints.at(before.id)};
  EXPECT_GT(c.distances_of(before, {NumberFormat::f64}, 1)[0], 0.1);
  EXPECT_LT(c.distances_of(after, {NumberFormat::f64}, 1)[0], 3e-6);
  c.ids.at("decode.2").data[0] = -1;
  const oracle::Answer first =
      exact_of({c.weights(), c.plan.passes, c.ids, {}}, c.plan.source_case.numerics, 1);
  EXPECT_EQ(first.passes.back(), "decode.1");
}

TEST(Rerun, OfAnOverflowIsInfinitelyFar) {
  const ExactCase c(line_of(",embed_scale=1e5"));
  for (const double d : c.distances_of(c.asked("prefill.c0", -1, "embed"), {NumberFormat::f16}, 2))
    EXPECT_EQ(d, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace shardproof::rerun
