// Which matrices of a text weights=int8 quantizes, by which scales, and the flat form with them.
#include "weights/text/scales.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/weights/text/plain_model.h"
#include "weights/model/model_config.h"
#include "weights/text/flat.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

std::set<std::string> all_weights_of_layer(const ModelText& text) {
  std::set<std::string> names;
  for (const TextWeight& weight : text.section(TextSection::layer).weights)
    if (weight.letters.size() > 1) names.insert(weight.name);
  return names;
}

/// "wq_scale : HQ of wq" line by line.
std::string scales_of(const std::string& text) {
  const ModelText flat = flat_text(parse_model_text(text));
  std::string lines;
  for (const TextScale& scale : text_scales(flat, all_weights_of_layer(flat))) {
    lines += fmt::format("{} : {} of", scale.name, scale.channels);
    for (const std::string& matrix : scale.matrices) lines += " " + matrix;
    lines += scale.file == scale.name ? "\n" : fmt::format(", {}\n", scale.file);
  }
  return lines;
}

std::string line_of(const ModelText& text, const std::string& name) {
  const std::string printed = print_model_text(text);
  const auto at = printed.find("\n" + name + " : ");
  return at == printed.npos ? "" : printed.substr(at + 1, printed.find('\n', at + 1) - at - 1);
}

TEST(TextScales, AreThoseOfKeys) {
  EXPECT_EQ(scales_of(text_of_model(parse_model("llama"))),
            "wq_scale : HQ of wq\nwk_scale : KQ of wk\nwv_scale : KQ of wv\nwo_scale : E of wo\n"
            "w_gate_scale : F of w_gate\nw_up_scale : F of w_up\nw_out_scale : E of w_out\n");
  // One sum, one scale, with or without biases.
  for (const char* model : {"palm-tiny", "palm-tiny,norm=layernorm,bias=all", "gptj"})
    EXPECT_NE(
        scales_of(text_of_model(parse_model(model))).find("\nblock_out_scale : E of wo w_out\n"),
        std::string::npos)
        << model;
}

TEST(TextScales, AreOfTheLettersThatTheResultKeeps) {
  // Experts have each their own; what the text reads through before, or as a factor, has none.
  EXPECT_EQ(scales_of(std::string(kPlainModel)),
            "wq_scale : HQ of wq\nwk_scale : KQ of wk\nw_router_scale : X of w_router\n"
            "we_scale : XA of we\nwo_scale : E of wo\n");
  // A sum that keeps none of its matrix's letters has no channel.
  std::string gated =
      with_line("weight extra : E if local", "weight extra : E if local\nweight wg : HQ");
  const std::string before = "more : BLE = in unless local";
  gated.insert(gated.find(before), "gate_of_all : BL = einsum(BLHQ,HQ->BL; q, wg)\n");
  EXPECT_EQ(scales_of(gated), scales_of(std::string(kPlainModel)));
  // One of which nothing is summed over has none either: each number would have its own scale.
  std::string spread =
      with_line("weight extra : E if local", "weight extra : E if local\nweight wg : HQ");
  spread.insert(spread.find(before), "spread : BLHQ = einsum(BL,HQ->BLHQ; max(norm, E), wg)\n");
  EXPECT_EQ(scales_of(spread), scales_of(std::string(kPlainModel)));
  const auto without_wq = [](const char* line) {
    const std::string scales = scales_of(with_line("more : BLE = in unless local", line));
    return scales.find("wq_scale") == std::string::npos;
  };
  EXPECT_FALSE(without_wq("more : BLE = mul(in, 1) unless local"));
  // Read otherwise, with other channels, or beside another matrix.
  EXPECT_TRUE(without_wq("more : BLE = sum(mul(in, wq), HQ) unless local"));
  EXPECT_TRUE(without_wq("more : BLE = einsum(BLHQ,EHQ->BLE; q, wq) unless local"));
  EXPECT_TRUE(
      without_wq("more : BLE = add(in, sum(einsum(BLE,EHQ->BLHQ + BLE,EHQ->BLHQ; in, wq; norm, "
                 "wq), HQ)) unless local"));
  // Again in the same way.
  EXPECT_FALSE(
      without_wq("more : BLE = add(in, sum(einsum(BLE,EHQ->BLHQ; in, wq), HQ)) unless local"));
}

TEST(TextScales, HaveNamesThatNothingElseHas) {
  EXPECT_NE(scales_of(with_line("more : BLE = in unless local",
                                "wq_scale : BL = sum(in, E)\nmore : BLE = in unless local"))
                .find("wq_scale_1 : HQ of wq\n"),
            std::string::npos);
  EXPECT_NE(scales_of(with_line("weight wq : EHQ", "weight wq : EHQ from q_proj"))
                .find("wq_scale : HQ of wq, q_proj_scale\n"),
            std::string::npos);
}

TEST(TextScales, OfTheFlatFormByEye) {
  const ModelText flat = flat_text(parse_model_text(std::string(kPlainModel)));
  const ModelText scaled = scaled_text(flat, text_scales(flat, all_weights_of_layer(flat)));
  EXPECT_EQ(line_of(scaled, "q_1_codes"), "q_1_codes : BLHQ = einsum(BLE,EHQ->BLHQ; norm, wq)");
  EXPECT_EQ(line_of(scaled, "q_1"), "q_1 : BLHQ = mul(q_1_codes, wq_scale)");
  EXPECT_EQ(line_of(scaled, "q"), line_of(flat, "q"));
  EXPECT_NE(print_model_text(scaled).find("weight wq_scale : HQ is gain from wq_scale\n"),
            std::string::npos);
  // It is a text like any other, and flat.
  const ModelText again = parse_model_text(print_model_text(scaled));
  EXPECT_EQ(print_model_text(again), print_model_text(scaled));
  EXPECT_EQ(print_model_text(flat_text(scaled)), print_model_text(scaled));
}

}  // namespace
}  // namespace shardproof
