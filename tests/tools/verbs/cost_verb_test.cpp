// The verb cost: each subverb's text and JSON, and what it refuses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/tools/cli_fixture.h"

namespace {

TEST_F(Cli, CostCountsParameters) {
  const Outcome o = run("cost parameters --model llama-7b");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find(" 6738415616\n"), std::string::npos) << o.out;
  const auto json = nlohmann::json::parse(run("cost parameters --json").out);
  EXPECT_EQ(json["matrices"], 540356640768);
  expect_refused("cost parameters --model palm-9b", "did you mean palm-8b?");
}

TEST_F(Cli, CostOfAPipeline) {
  const std::string flags =
      "cost pipeline --model mt-nlg-530b --chip a100-80g --stages 3 --tensor 8 --batch 32 "
      "--microbatches 4 --context 128";
  const Outcome o = run(flags);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find(" 33.33 %\n"), std::string::npos) << o.out;
  const auto json = nlohmann::json::parse(run(flags + " --json").out);
  EXPECT_EQ(json["chips"], 24);
  EXPECT_EQ(json["layers_of_stage"], 35);
  EXPECT_EQ(json["fits"], true);
  // 24 chips, of which an A100's switches join 16.
  EXPECT_EQ(json["joined"], false);
  const auto longer = nlohmann::json::parse(run(flags + " --steps 64 --json").out);
  EXPECT_LT(longer["bubble"].get<double>(), 0.02);
  expect_refused(flags + " --steps 0", "flag_c3: --steps 0: from 1 to");
  expect_refused("cost pipeline --batch 32 --microbatches 5", "pipeline_c3: microbatches=5");
  expect_refused("cost pipeline --stages 106 --batch 2", "nearest legal: 105");
  expect_refused("cost pipeline --act int8", "act=");
}

TEST_F(Cli, CostOfExperts) {
  const std::string flags = "cost experts --model palm-8b --experts 64 --top 2 --chips 16 ";
  const auto json =
      nlohmann::json::parse(run(flags + "--tokens 4096 --capacity-factor 1.25 --json").out);
  EXPECT_EQ(json["slots"], 160);
  EXPECT_EQ(json["token_flops"].get<double>(), 2 * json["dense_flops"].get<double>());
  EXPECT_EQ(run(flags + "--tokens 4096").code, 0);
  expect_refused(flags + "--tokens 4097", "experts_c3: chips=16");
  expect_refused(flags + "--capacity-factor much --tokens 16", "flag_c8: --capacity-factor much");
  expect_refused(flags + "--capacity-factor -1 --tokens 16", "experts_c1: capacity=-1");
}

TEST_F(Cli, CostOfOffload) {
  const auto json =
      nlohmann::json::parse(run("cost offload --model llama-2-70b --chip a100-80g --json").out);
  EXPECT_GT(json["host_seconds"].get<double>(), 1.0);
  EXPECT_EQ(json["seconds"], json["host_seconds"]);
  // Rows are read of the embedding, and of cos and sin.
  EXPECT_EQ(json["host_bytes"].get<double>() - json["streamed_bytes"].get<double>(),
            2.0 * 32000 * 8192 + 2 * 4.0 * 4096 * 64);
  // Its defaults are a model that one chip does not hold, and a chip that has a host.
  const Outcome usual = run("cost offload --json");
  ASSERT_EQ(usual.code, 0) << usual.err;
  EXPECT_EQ(nlohmann::json::parse(usual.out), json);
  EXPECT_NE(run("cost offload --help").out.find("list chips [a100-80g]"), std::string::npos);
  EXPECT_NE(run("cost pipeline --help").out.find("list chips [tpu-v4]"), std::string::npos);
  const Outcome fits = run("cost offload --model llama-7b --chip a100-80g");
  EXPECT_NE(fits.out.find("that fits        100 %\n"), std::string::npos) << fits.out;
  expect_refused("cost offload --model llama-7b --chip orin-nano-8g", "offload_c2");
  expect_refused("cost offload --model llama-7b --chip a100-80g --context 2000000",
                 "nearest legal: a context of");
  expect_refused("cost offload --batch 1000000000",
                 "no context fits; nearest legal: a batch of 127");
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

/// Every verb that takes int8 weights says what embedding and unembedding are beside them.
TEST_F(Cli, NamesWhatEmbeddingsAreBesideInt8Weights) {
  const std::string note = "int8 weights: embedding and unembedding are bf16, as in the paper's";
  const std::string of_plan = "plan --model palm-8b --chips 8 --weights ";
  for (const std::string& call :
       {of_plan + "TYPE --phase decode", of_plan + "TYPE --capacity --batch 8",
        of_plan + "TYPE --pareto --batch 1",
        of_plan + "TYPE --split --ttft 10s --tpot 1s --context 64",
        std::string("intensity --model palm-8b --weights TYPE")}) {
    const auto with = [&](const char* type) {
      std::string words = call;
      return run(words.replace(words.find("TYPE"), 4, type));
    };
    EXPECT_NE(with("int8").out.find(note), std::string::npos) << call << with("int8").out;
    EXPECT_EQ(with("bf16").out.find("embedding and unembedding are"), std::string::npos) << call;
  }
  for (const char* call : {"pipeline --model palm-8b", "offload --model palm-8b"}) {
    const std::string out = run(std::string("cost ") + call + " --weights int8").out;
    EXPECT_NE(out.find("\nW matrices are                        int8\n"
                       "embedding and unembedding are         bf16\n"),
              std::string::npos)
        << out;
    const std::string f32 = run(std::string("cost ") + call + " --weights f32 --json").out;
    EXPECT_EQ(nlohmann::json::parse(f32)["embeddings"], "f32");
  }
}

TEST_F(Cli, CostOfSpeculation) {
  const auto json = nlohmann::json::parse(
      run("cost speculation --acceptance 0.5 --draft-cost 0.1 --gamma 3 --json").out);
  EXPECT_DOUBLE_EQ(json["tokens"].get<double>(), 1.875);
  EXPECT_DOUBLE_EQ(json["speed_up"].get<double>(), 1.875 / 1.3);
  EXPECT_EQ(run("cost speculation").code, 0);
  expect_refused("cost speculation --acceptance 1.5",
                 "speculation_c1: acceptance=1.5: from 0 to 1");
  expect_refused("cost speculation --gamma 0", "flag_c3: --gamma 0");
  expect_refused("cost speculation --draft-cost -1", "speculation_c3");
  expect_refused("cost", "verb_c1");
}

TEST_F(Cli, CostFitsEightyColumns) {
  for (const char* call :
       {"parameters --model gpt-3", "pipeline --stages 105",
        "pipeline --chip a100-80g --stages 3 --tensor 8", "offload", "experts --model mt-nlg-530b",
        "offload --model phi-2", "speculation --acceptance 0.123456 --draft-cost 0.0123456"}) {
    const Outcome o = run(std::string("cost ") + call);
    EXPECT_EQ(o.code, 0) << call << o.err;
    std::istringstream lines(o.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

}  // namespace
