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

/// A preset and the text that is printed of it are one model, of one cost.
TEST_F(Cli, CostOfATextIsThatOfItsKeys) {
  for (const char* keys : {"llama", "gptj", "falcon", "palm-tiny,block=serial,bias=qkv"}) {
    const std::string file = write("m.model", run(fmt::format("list models --text {}", keys)).out);
    for (const char* verb :
         {"cost offload --chip a100-80g --batch 3 --context 9",
          "cost pipeline --chip a100-80g --stages 2 --tensor 2 --batch 4 --microbatches 2",
          "cost pipeline --chip a100-80g --stages 1 --tensor 3 --context 5"}) {
      const Outcome text = run(fmt::format("{} --json --model {}", verb, file));
      ASSERT_EQ(text.code, 0) << text.err;
      EXPECT_EQ(text.out, run(fmt::format("{} --json --model {}", verb, keys)).out) << keys;
    }
    const auto of_text = nlohmann::json::parse(run("cost parameters --json --model " + file).out);
    const auto of_keys =
        nlohmann::json::parse(run(fmt::format("cost parameters --json --model {}", keys)).out);
    EXPECT_EQ(of_text["total"], of_keys["total"]) << keys;
    EXPECT_EQ(of_text["active"], of_keys["total"]) << keys;
  }
}

TEST_F(Cli, CostOfATextPrintsItsWeights) {
  const std::string file = write("m.model", run("list models --text llama,layers=3").out);
  const Outcome o = run("cost parameters --model " + file + ",E=48");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(o.out.starts_with(file + ",E=48: parameters\n")) << o.out;
  EXPECT_NE(o.out.find("wq EHQ x3"), std::string::npos) << o.out;
  EXPECT_EQ(o.out.find("rope_cos"), std::string::npos) << o.out;
}

/// A text of an FFN asks the same as its keys; one with experts says how many, and how many of them
/// a token reads.
TEST_F(Cli, CostOfExpertsOfAText) {
  const std::string file = write("m.model", run("list models --text llama").out);
  for (const char* flags : {"--experts 8 --top 2 --chips 4 --tokens 64", "--tokens 3"}) {
    const std::string asked = std::string("cost experts --json ") + flags + " --model ";
    EXPECT_EQ(run(asked + file).out, run(asked + "llama").out) << flags;
  }
  const std::string experts = write("e.model", R"(model experts
dim E width
dim V vocabulary
dim X experts
dim D channels of an expert
flag dense
small E=6, V=10, X=8, D=5, layers=2, dense=10

embedding
weight table : VE
embed : BLE = gather(table, ids, V)

layer
weight w_router : EX
weight we : XED
weight we_out : XDE
chosen : BLX = top(einsum(BLE,EX->BLX; in, w_router), X, 2) unless dense
expert : BLXD where chosen = einsum(BLE,XED->BLXD; in, we) unless dense
e_out : BLXE = einsum(BLXD,XDE->BLXE; relu(expert), we_out) unless dense
out : BLE = add(in, sum(e_out, X)) unless dense
out : BLE = in if dense

head
logits : BLV = einsum(BLE,VE->BLV; in, table)
)");
  const Outcome o = run("cost experts --chips 4 --tokens 16 --model " + experts);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(o.out.starts_with(experts + ", FFN of one layer: 8 experts, top 2, 16 tokens on 4 "))
      << o.out;
  const auto json = nlohmann::json::parse(
      run("cost experts --json --chips 4 --tokens 16 --model " + experts).out);
  EXPECT_EQ(json["router_flops"], 2.0 * 6 * 8 * 16);
  EXPECT_EQ(json["dense_flops"], 2.0 * (2 * 6 * 5) * 16);
  EXPECT_EQ(json["token_flops"], 2.0 * json["dense_flops"].get<double>());
  EXPECT_EQ(json["slots"], 4);
  EXPECT_EQ(json["weight_bytes"], 2.0 * 60 * 8 / 4);
  const Outcome refused = run("cost experts --top 3 --model " + experts);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            "shardproof: experts_c5: experts=8, top=3: the text has 8 experts, of which a token "
            "reads 2\n");
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
