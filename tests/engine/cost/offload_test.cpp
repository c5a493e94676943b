#include "engine/cost/offload.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "engine/cost/parameters.h"
#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

OffloadSetting setting(const char* model, std::int64_t context) {
  OffloadSetting s;
  s.model = parse_model(model);
  s.context = context;
  return s;
}

TEST(Offload, OfLlama70bOnOneA100) {
  const Chip& chip = find_chip("a100-80g");
  const OffloadCost cost = offload_cost(setting("llama-2-70b", 2048), chip);
  const double weights =
      2.0 * static_cast<double>(parameters_of(parse_model("llama-2-70b")).matrices());
  EXPECT_EQ(cost.weight_bytes, weights);
  EXPECT_EQ(cost.cache_bytes, 2.0 * 80 * 8 * 128 * 2048 * 2);
  EXPECT_EQ(cost.resident_bytes, chip.hbm - cost.cache_bytes);
  EXPECT_EQ(cost.host_bytes, weights - cost.resident_bytes);
  // The table of the embedding is not the unembedding: of it rows are read, and nothing is
  // streamed.
  EXPECT_EQ(cost.streamed_bytes, cost.host_bytes - 2.0 * 32000 * 8192);
  EXPECT_EQ(cost.host_seconds, cost.streamed_bytes / 32e9);
  EXPECT_EQ(cost.seconds(), cost.host_seconds);
  EXPECT_GT(cost.fraction(), 0.6);
  EXPECT_LT(cost.fraction(), 0.63);
}

TEST(Offload, StreamsATableThatIsMultipliedWith) {
  OffloadSetting s = setting("llama-2-70b,tied=true", 2048);
  const OffloadCost cost = offload_cost(s, find_chip("a100-80g"));
  EXPECT_GT(cost.host_bytes, 0.0);
  EXPECT_EQ(cost.streamed_bytes, cost.host_bytes);
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

TEST(Offload, RefusesWhatCannotBe) {
  const Chip& chip = find_chip("a100-80g");
  EXPECT_EQ(message_of([&] { offload_cost(setting("llama-7b", 1 << 20), chip); }),
            "offload_c1: the caches of 1 x 1048576 positions take 549.8 GB, and a100-80g has 85.9 "
            "GB; nearest legal: a context of 163839");
  EXPECT_NO_THROW(offload_cost(setting("llama-7b", 163839), chip));
  // Where no context fits, a batch that does; and where none does, neither.
  const auto refused = [](const OffloadSetting& s, const Chip& on) {
    return message_of([&] { offload_cost(s, on); });
  };
  OffloadSetting many = setting("llama-2-70b", 2048);
  many.batch = 1000000000;
  EXPECT_EQ(refused(many, chip),
            "offload_c1: the caches of 1000000000 x 2048 positions take 6.711e+05 TB, and a100-80g "
            "has 85.9 GB; no context fits; nearest legal: a batch of 127");
  many.batch = 127;
  EXPECT_NO_THROW(offload_cost(many, chip));
  many.batch = 128;
  EXPECT_EQ(label_of([&] { offload_cost(many, chip); }), "offload_c1");
  // A prefill's context has its new tokens.
  OffloadSetting prefill = setting("llama-7b", 200000);
  prefill.tokens = 200000;
  EXPECT_EQ(refused(prefill, chip),
            "offload_c1: the caches of 1 x 200000 positions take 104.9 GB, and a100-80g has 85.9 "
            "GB; no context and no batch fits; it takes a smaller model, or a larger chip or host");
  OffloadSetting both = setting("llama-7b", 200000);
  both.batch = 200000;
  both.tokens = 2;
  EXPECT_EQ(refused(both, chip),
            "offload_c1: the caches of 200000 x 200000 positions take 2.097e+04 TB, and a100-80g "
            "has 85.9 GB; no context fits, and no batch; nearest legal: a batch of 81919 with a "
            "context of 2");
  both.batch = 81919;
  both.context = 2;
  EXPECT_NO_THROW(offload_cost(both, chip));
  // What the host cannot hold has room beside the caches.
  Chip small_host = chip;
  small_host.host = 1e9;
  EXPECT_EQ(refused(setting("llama-7b", 1 << 20), small_host),
            "offload_c1: the caches of 1 x 1048576 positions take 549.8 GB, and a100-80g has 85.9 "
            "GB; nearest legal: a context of 140043");
  EXPECT_NO_THROW(offload_cost(setting("llama-7b", 140043), small_host));
  EXPECT_EQ(label_of([&] { offload_cost(setting("llama-7b", 140044), small_host); }), "offload_c2");
  EXPECT_EQ(label_of([&] { offload_cost(setting("palm-540b", 2048), chip); }), "offload_c2");
  EXPECT_EQ(message_of([&] { offload_cost(setting("llama-7b", 128), find_chip("orin-nano-8g")); }),
            "offload_c2: 4.953 GB of the weights' 13.48 GB do not fit beside the caches on "
            "orin-nano-8g, and its host has 0 B for them; nearest legal: a host of 4724 MiB, or a "
            "smaller model");
  EXPECT_EQ(label_of([&] { offload_cost(setting("llama-7b", 0), chip); }), "intensity_c1");
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
