// The verb cost: numbers of it that others confirm.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cli_fixture.h"

namespace {

TEST_F(Cli, CostOfExperts) {
  const std::string flags = "cost experts --model palm-8b --experts 64 --top 2 --chips 16 ";
  const auto json =
      nlohmann::json::parse(run(flags + "--tokens 4096 --capacity-factor 1.25 --json").out);
  EXPECT_EQ(json["token_flops"].get<double>(), 2 * json["dense_flops"].get<double>());
}

TEST_F(Cli, CostOfOffload) {
  const auto json =
      nlohmann::json::parse(run("cost offload --model llama-2-70b --chip a100-80g --json").out);
  // Rows are read of the embedding, and of cos and sin.
  EXPECT_EQ(json["host_bytes"].get<double>() - json["streamed_bytes"].get<double>(),
            2.0 * 32000 * 8192 + 2 * 4.0 * 4096 * 64);
}

/// One chip, one model, one type, one pass: one answer.
TEST_F(Cli, CostOfOffloadIsThatOfAPlan) {
  for (const char* model : {"llama-7b", "palm-8b", "phi-2,tied=true"})
    for (const char* weights : {"bf16", "int8"})
      for (const bool prefills : {false, true}) {
        const std::string asked = fmt::format(
            " --model {} --chip a100-80g --weights {} --batch 2 --json", model, weights);
        const Outcome o = run("cost offload --context 1024" + asked +
                              (prefills ? " --tokens 1024" : " --tokens 1"));
        ASSERT_EQ(o.code, 0) << o.err;
        const auto offload = nlohmann::json::parse(o.out);
        const Outcome p = run("plan --torus 1x1x1 --only ws2d:batch" + asked +
                              (prefills ? " --phase prefill --alone --prompt 1024 --context 1025"
                                        : " --phase decode --gen 1 --context 1024"));
        ASSERT_EQ(p.code, 0) << p.err;
        const auto plan = nlohmann::json::parse(p.out);
        const auto& phase = plan["choices"][0][prefills ? "prefill" : "decode"];
        EXPECT_EQ(offload["weight_bytes"], phase["memory"]["weights"]) << asked;
        EXPECT_EQ(offload["cache_bytes"], phase["memory"]["caches"]) << asked;
        EXPECT_EQ(offload["memory_seconds"], phase["memory_seconds"]) << asked;
        EXPECT_EQ(offload["compute_seconds"], phase["compute_needed"]) << asked;
        EXPECT_EQ(offload["seconds"], phase["lower"]) << asked;
        EXPECT_EQ(offload["weights"], weights);
        EXPECT_EQ(offload["embeddings"], plan["embeddings"][weights]);
        EXPECT_EQ(offload["embeddings"], "bf16");
      }
}

}  // namespace
