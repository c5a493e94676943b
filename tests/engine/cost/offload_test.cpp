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
  EXPECT_EQ(cost.streamed_bytes, weights - cost.resident_bytes);
  EXPECT_EQ(cost.host_seconds, cost.streamed_bytes / 32e9);
  EXPECT_EQ(cost.seconds(), cost.host_seconds);
  EXPECT_GT(cost.fraction(), 0.6);
  EXPECT_LT(cost.fraction(), 0.63);
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
  EXPECT_EQ(label_of([&] { offload_cost(setting("palm-540b", 2048), chip); }), "offload_c2");
  EXPECT_EQ(message_of([&] { offload_cost(setting("llama-7b", 128), find_chip("orin-nano-8g")); }),
            "offload_c2: 4.953 GB of the weights' 13.48 GB do not fit beside the caches on "
            "orin-nano-8g, and its host has 0 B for them; nearest legal: a host of 4.953 GB, or a "
            "smaller model");
  EXPECT_EQ(label_of([&] { offload_cost(setting("llama-7b", 0), chip); }), "intensity_c1");
}

RC_GTEST_PROP(Offload, TheBytesAreAllTheWeights, ()) {
  Chip chip = find_chip("a100-80g");
  chip.hbm = *rc::gen::inRange(2, 40) * 1e9;
  const auto context = *rc::gen::inRange<std::int64_t>(1, 2000);
  const OffloadCost cost = offload_cost(setting("llama-7b", context), chip);
  RC_ASSERT(cost.resident_bytes + cost.streamed_bytes == cost.weight_bytes);
  RC_ASSERT(cost.resident_bytes + cost.cache_bytes <= chip.hbm);
  RC_ASSERT((cost.streamed_bytes == 0.0) == (cost.host_seconds == 0.0));
  RC_ASSERT(cost.seconds() >= cost.seconds_without());
}

}  // namespace
}  // namespace shardproof::cost
