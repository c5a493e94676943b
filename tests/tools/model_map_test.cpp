// A checkpoint of another program, by the map that ships: what is printed, read, proved.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cli_fixture.h"
#include "tests/weights/safetensors/tensor_writer.h"

namespace {

using shardproof::Shape;
using shardproof::Tensor;

const std::string kMap = SHARDPROOF_SOURCE "/docs/programs/llama.map";

class Checkpoint : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    model_ = write("llama.model", run("list models --text llama").out);
    fs::create_directories(path("dir"));
    write("dir/config.json", R"({"num_hidden_layers": 2, "hidden_size": 24, "head_dim": 4,
      "intermediate_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2, "vocab_size": 36,
      "max_position_embeddings": 32, "rms_norm_eps": 1e-6, "rope_theta": 1e4})");
    put("model.embed_tokens.weight", {36, 24});
    put("lm_head.weight", {36, 24});
    put("model.norm.weight", {24});
    for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
      const std::string own = layer;
      put(own + "input_layernorm.weight", {24});
      put(own + "post_attention_layernorm.weight", {24});
      put(own + "self_attn.q_proj.weight", {24, 24});
      put(own + "self_attn.k_proj.weight", {8, 24});
      put(own + "self_attn.v_proj.weight", {8, 24});
      put(own + "self_attn.o_proj.weight", {24, 24});
      put(own + "mlp.gate_proj.weight", {48, 24});
      put(own + "mlp.up_proj.weight", {48, 24});
      put(own + "mlp.down_proj.weight", {24, 48});
    }
  }

  void put(const std::string& name, const Shape& shape) {
    Tensor tensor(shape);
    for (float& x : tensor.data) x = static_cast<float>(++drawn_ * 37 % 101 - 50) / 64.0F;
    file_.add(name, tensor);
  }

  std::string directory() {
    file_.write(path("dir/model.safetensors"));
    return path("dir").string();
  }
  std::string import(const std::string& more = "") {
    return "weights import " + directory() + " --model " + model_ + " --map " + kMap + " --out " +
           path("w.h5").string() + more;
  }

  std::string model_;
  shardproof::TensorFile file_;
  int drawn_ = 0;
};

TEST_F(Checkpoint, IsReadAndProved) {
  const Outcome read = run(import());
  ASSERT_EQ(read.code, 0) << read.err;
  EXPECT_EQ(read.out, path("w.h5").string() + ": 23 tensors, 12088 elements of " + model_ +
                          ",E=24,F=48,H=6,K=2,P=32,Q=4,V=36,eps=1e-06,layers=2,rotary=4,"
                          "theta=10000\n");
  // Of one file the config is that of its folder.
  EXPECT_EQ(run("weights import dir/model.safetensors --model " + model_ + " --map " + kMap +
                " --out w2.h5")
                .code,
            0);
  EXPECT_EQ(slurp(path("w2.h5")), slurp(path("w.h5")));
  const std::string line = model_ + ",map=" + kMap + ",config=" + directory();
  const Outcome proved = run("verify --model " + line + " --weights " + path("w.h5").string() +
                             " --torus 2x1x3 --prefill wg-xyz:batch --decode ws2d:batch --batch 6");
  EXPECT_EQ(proved.code, 0) << proved.out << proved.err;
  EXPECT_NE(proved.out.find("1 equal"), std::string::npos) << proved.out;
  EXPECT_EQ(run("verify --model " + line + ",E=48 --weights " + path("w.h5").string()).code, 2);
}

TEST_F(Checkpoint, NamesWhatItDoesNotRead) {
  put("model.layers.0.self_attn.q_proj.bias", {24});
  const Outcome read = run(import());
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_NE(read.out.find("\nnot read, of the checkpoint's 22 tensors: "
                          "[\"model.layers.0.self_attn.q_proj.bias\"]\n"),
            std::string::npos)
      << read.out;
}

TEST_F(Checkpoint, RefusesWithoutAFile) {
  const auto refused = [&](const std::string& call) {
    const Outcome outcome = run(call);
    EXPECT_EQ(outcome.code, 2) << call;
    EXPECT_FALSE(fs::exists(path("w.h5"))) << call;
    return outcome.err.substr(0, outcome.err.find(": ", 12));
  };
  EXPECT_EQ(refused(import(" --config none.json")), "shardproof: model_map_f3");
  EXPECT_EQ(refused("weights import " + directory() + " --model llama --map " + kMap + " --out " +
                    path("w.h5").string()),
            "shardproof: case_model");
  EXPECT_EQ(refused("weights import none --model " + model_ + " --map " + kMap + " --config " +
                    directory() + " --out " + path("w.h5").string()),
            "shardproof: tensors_open");
  EXPECT_EQ(refused("weights import " + directory() + " --model " + model_ + ",E=25 --map " + kMap +
                    " --out " + path("w.h5").string()),
            "shardproof: model_map_c5");
}

TEST_F(Checkpoint, HasAMapThatIsListed) {
  const std::string call = "list map " + kMap + " --model " + model_ + " --config " + directory();
  const Outcome text = run(call);
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* line :
       {", of LlamaForCausalLM\n--model ", "\nsetting   value    formula\n",
        "\nF         48       intermediate_size\n", "\nrope_cos  a table  rope_cos(rope_theta, ",
        "\nwq            (HQ)E    model.layers.{n}.self_attn.q_proj.weight\n",
        "\nattn        BL(HQ) input  model.layers.{n}.self_attn.o_proj\n"})
    EXPECT_NE(text.out.find(line), std::string::npos) << line << "\n" << text.out;
  const auto json = nlohmann::json::parse(run(call + " --json").out);
  EXPECT_EQ(json["class"], "LlamaForCausalLM");
  EXPECT_EQ(json["settings"].size(), 13U);
  EXPECT_EQ(json["settings"][0],
            (nlohmann::json{{"name", "layers"}, {"formula", "num_hidden_layers"}, {"value", "2"}}));
  EXPECT_EQ(json["weights"][4],
            (nlohmann::json{{"weight", "wq"},
                            {"tensor", "model.layers.{n}.self_attn.q_proj.weight"},
                            {"pattern", "(HQ)E"}}));
  EXPECT_EQ(json["values"].back(),
            (nlohmann::json{{"value", "logits"}, {"module", "lm_head"}, {"pattern", "BLV"}}));
  // Without a config its example.
  const Outcome example = run("list map " + kMap + " --model " + model_);
  EXPECT_NE(example.out.find("\nE         96       hidden_size\n"), std::string::npos);
  // Parts and rows before are shown.
  const std::string fused =
      write("fused.map", "wq < qkv ([HQ,KQ])E take 0\nrope_cos < places PQ skip 2\n");
  const Outcome listed = run("list map " + fused + " --model " + model_);
  EXPECT_NE(listed.out.find("([HQ,KQ])E take 0"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("PQ skip 2"), std::string::npos) << listed.out;
}

}  // namespace
