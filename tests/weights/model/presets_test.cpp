#include "weights/model/presets.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tests/weights/expect_error.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

std::string section_6_3() {
  std::ifstream file(SHARDPROOF_SOURCE "/docs/spec-case.md");
  std::ostringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  const auto begin = text.find("### 6.3"), end = text.find("### 6.4");
  return begin < end ? text.substr(begin, end - begin) : "";
}

TEST(Presets, AreTheRowsOfTheSpecification) {
  const std::string text = section_6_3();
  std::size_t rows = 0;
  for (std::size_t at = 0; (at = text.find("\n| `", at)) != std::string::npos; ++at) ++rows;
  std::size_t of_keys = 1;  // the palm presets share a row
  for (const Preset& p : all_presets()) {
    const std::string sizes =
        fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} |\n", p.name, p.layers, p.E,
                    p.F, p.H, p.K, p.Q, p.V, p.divides);
    EXPECT_NE(text.find(sizes), std::string::npos) << sizes;
    if (p.keys.empty()) continue;
    ++of_keys;
    const std::string keys = fmt::format("| `{}` | `{}` |\n", p.name, p.keys);
    EXPECT_NE(text.find(keys), std::string::npos) << keys;
  }
  EXPECT_EQ(rows, all_presets().size() + of_keys);
}

TEST(Presets, AreTheModelsThatTheirNamesSay) {
  const ModelConfig llama = parse_model("llama"), gptj = parse_model("gptj");
  const ModelConfig falcon = parse_model("falcon");
  ModelConfig c;
  c.preset = "llama", c.F = 264, c.K = 6, c.block = Block::serial, c.tied = false, c.eps = 1e-5;
  c.logit_scale = 1.0F;
  EXPECT_EQ(llama, c);
  c = ModelConfig();
  c.preset = "gptj", c.K = 24, c.Q = 16, c.ffn = Ffn::gelu, c.norm = Norm::layernorm;
  c.bias = Bias::ffn, c.rope = Rope::interleaved, c.rotary = 0.25, c.tied = false, c.eps = 1e-5;
  c.unembed_bias = true, c.logit_scale = 1.0F;
  EXPECT_EQ(gptj, c);
  c = ModelConfig();
  c.preset = "falcon", c.ffn = Ffn::gelu_erf, c.norm = Norm::layernorm, c.bias = Bias::norm;
  c.eps = 1e-5, c.logit_scale = 1.0F;
  EXPECT_EQ(falcon, c);
}

/// The weights that are biases, of a layer and of the model.
std::set<std::string> biases(const char* model) {
  const ModelConfig config = parse_model(model);
  std::set<std::string> names;
  for (const WeightRow& row : all_weights())
    if (row.kind == WeightKind::bias && has_weight(config, row.name)) names.emplace(row.name);
  return names;
}

TEST(Presets, HaveTheBiasesOfTheirModels) {
  using Names = std::set<std::string>;
  EXPECT_EQ(biases("llama"), Names());
  EXPECT_EQ(biases("gptj"),
            (Names{"norm_bias", "final_norm_bias", "b_gate", "b_out", "unembed_bias"}));
  EXPECT_EQ(biases("falcon"), (Names{"norm_bias", "final_norm_bias"}));
}

TEST(Presets, ArePrintedByTheirNameAndWhatDiffers) {
  for (const std::string text :
       {"llama", "gptj", "falcon", "llama,K=24", "llama,block=parallel", "gptj,E=48,rotary=0.5",
        "gptj,rope=none", "gptj,rope=alibi,unembed_bias=false", "falcon,tied=false",
        "falcon,logit_scale=0.5", "palm-tiny,bias=ffn,rope=alibi,unembed_bias=true"})
    EXPECT_EQ(print_model(parse_model(text)), text);
  EXPECT_EQ(parse_model("llama,E=64").logit_scale, 1.0F);  // does not follow from E
  EXPECT_EQ(with_dims(parse_model("llama"), 64, 8, 6, 6, 8).logit_scale, 1.0F);
  EXPECT_EQ(with_dims(parse_model("palm-tiny"), 64, 8, 6, 6, 8).logit_scale, 0.125F);
  // What a preset says of the rotation goes where nothing rotates.
  EXPECT_EQ(parse_model("gptj,rope=alibi").rotary, 1.0);
  EXPECT_EQ(label_of([] { parse_model("gptj,rope=alibi,rotary=0.25"); }), "model_value");
}

TEST(Presets, TheTwoNormFalconsAreRefusedByName) {
  for (const char* text : {"falcon-40b", "falcon-180b", "falcon-40b,K=8"}) {
    const std::string message = message_of([&] { parse_model(text); });
    EXPECT_TRUE(message.starts_with("model_preset: falcon-")) << message;
    EXPECT_NE(message.find("two layernorms"), std::string::npos) << message;
    EXPECT_TRUE(message.ends_with("the nearest legal: model=falcon")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_EQ(find_other_model("falcon"), nullptr);
  EXPECT_EQ(find_preset("falcon-40b"), nullptr);
}

}  // namespace
}  // namespace shardproof
