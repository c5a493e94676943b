// Texts of keys that store where another engine rounds.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/weights/expect_error.h"
#include "weights/base/detail/words.h"
#include "weights/model/rounding_places.h"
#include "weights/text/model_text.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

std::string text_of(const char* model, const std::string& rounding) {
  return text_of_model(parse_model(model), NumberFormat::f32, rounding);
}

/// The lines of one text that another lacks, in order.
std::string lines_of(const std::string& text, const std::string& other) {
  std::set<std::string, std::less<>> there;
  for (const std::string_view line : split(other, "\n")) there.emplace(line);
  std::string lines;
  for (const std::string_view line : split(text, "\n"))
    if (!there.contains(line)) lines += std::string(line) + "\n";
  return lines;
}

TEST(RoundingOfTexts, OfLlamaByEye) {
  EXPECT_EQ(text_of("llama", "spec"), text_of_model(parse_model("llama")));
  EXPECT_EQ(
      lines_of(text_of("llama", "hf"), text_of("llama", "spec")),
      "cos : BLQ = store(gather(rope_cos, pos, P))\n"
      "sin : BLQ = store(gather(rope_sin, pos, P))\n"
      "norm : BLE = store(mul(store(mul(in, div(1, sqrt(add(div(ss, E), eps))))), g_norm))\n"
      "q_rot : BLHQ = store(add(store(mul(q, cos)), store(mul(turn(q, Q, half rotary), sin))))\n"
      "k_rot : BLKQ = store(add(store(mul(k, cos)), store(mul(turn(k, Q, half rotary), sin))))\n"
      "raw_score : BLKGM where see = store(einsum(BLKGQ,BMKQ->BLKGM; split_dim(q_rot, H->KG), "
      "k_cache))\n"
      "score : BLHM = store(mul(merge_dim(raw_score, KG->H), attend_scale))\n"
      "share : BLHM = store(div(exp, denom))\n"
      "raw_attn : BLKGQ = einsum(BLKGM,BMKQ->BLKGQ; split_dim(share, H->KG), v_cache)\n"
      "attn : BLHQ = store(merge_dim(raw_attn, KG->H))\n"
      "norm2 : BLE = store(mul(store(mul(mid, div(1, sqrt(add(div(ss2, E), eps))))), g_norm2))\n"
      "act : BLF = store(silu(gate))\n"
      "final_norm : BLE = store(mul(store(mul(in, div(1, sqrt(add(div(final_ss, E), eps))))), "
      "g_final_norm))\n"
      "logits : BLV = store(einsum(BLE,VE->BLV; final_norm, unembed))\n");
}

TEST(RoundingOfTexts, OfEachPlaceByEye) {
  static constexpr const char* kModel =
      "palm-tiny,norm=layernorm,bias=all,ffn=geglu,embed_scale=0.5,logit_scale=0.5,"
      "unembed_bias=true";
  const auto adds = [&](const char* rounding, const char* model = nullptr) {
    if (model == nullptr) model = kModel;
    return lines_of(text_of(model, rounding), text_of(model, "spec"));
  };
  EXPECT_EQ(adds("embed:scale"),
            "embed : BLE = store(mul(gather(table, ids, V), store(embed_scale)))\n");
  EXPECT_EQ(adds("norm:mu"),
            "mu : BL = store(div(sum, E))\nfinal_mu : BL = store(div(final_sum, E))\n");
  EXPECT_EQ(adds("norm:d"),
            "d : BLE = store(sub(in, mu))\nfinal_d : BLE = store(sub(in, final_mu))\n");
  EXPECT_EQ(adds("exp:difference"), "less : BLHM = store(sub(score, max))\n");
  EXPECT_EQ(
      adds("attn:exp"),
      "stored_exp : BLHM = store(exp)\n"
      "raw_attn : BLKGQ = einsum(BLKGM,BMKQ->BLKGQ; split_dim(stored_exp, H->KG), v_cache)\n");
  EXPECT_EQ(adds("hidden:act"), "act : BLF = store(gelu_tanh(gate))\n");
  EXPECT_EQ(adds("hidden:inner"),
            "square : BLF = store(mul(gate, gate))\n"
            "cube : BLF = store(mul(store(mul(square, gate)), 0.044715))\n"
            "bent : BLF = store(tanh(store(mul(store(add(gate, cube)), 0.7978845608028654))))\n"
            "act : BLF = mul(store(mul(gate, 0.5)), store(add(bent, 1)))\n");
  EXPECT_EQ(adds("hidden:inner", "llama"), "act : BLF = mul(gate, store(sigmoid(gate)))\n");
  EXPECT_EQ(adds("sum:s", "llama,bias=qkv"),
            "raw_q : BLHQ = store(einsum(BLE,EHQ->BLHQ; norm, wq))\n"
            "raw_k : BLKQ = store(einsum(BLE,EKQ->BLKQ; norm, wk))\n"
            "raw_v : BLKQ = store(einsum(BLE,EKQ->BLKQ; norm, wv))\n");
  EXPECT_EQ(adds("out:each"),
            "raw_attn_out : BLE = einsum(BLHQ,HQE->BLE; attn, wo)\n"
            "attn_out : BLE = store(add(raw_attn_out, bo))\n"
            "raw_ffn_out : BLE = einsum(BLF,FE->BLE; hidden, w_out)\n"
            "ffn_out : BLE = store(add(raw_ffn_out, b_out))\n"
            "both : BLE = store(add(attn_out, ffn_out))\n"
            "out : BLE = store(add(in, both))\n"
            "raw_logits : BLV = store(einsum(BLE,VE->BLV; final_norm, table))\n"
            "scaled_logits : BLV = store(mul(raw_logits, logit_scale))\n"
            "logits : BLV = store(add(scaled_logits, unembed_bias))\n");
  EXPECT_EQ(adds("norm:r+xrg"),
            "norm : BLE = store(add(store(mul(mul(d, store(div(1, sqrt(add(div(ss, E), eps))))), "
            "g_norm)), norm_bias))\n"
            "final_norm : BLE = store(add(store(mul(mul(final_d, store(div(1, "
            "sqrt(add(div(final_ss, E), eps))))), g_final_norm)), final_norm_bias))\n");
}

// Every place changes the text of some model, and what it prints is a text.
TEST(RoundingOfTexts, EveryPlaceIsWritten) {
  for (const RoundingPlace& place : rounding_places()) {
    const std::string rounding = std::string(place.formula) + ":" + std::string(place.key);
    bool changes = false;
    for (const char* model : {"llama,bias=qkv,embed_scale=0.5", "gptj,norm=layernorm,bias=all"}) {
      const std::string text = text_of(model, rounding);
      EXPECT_EQ(print_model_text(parse_model_text(text)),
                print_model_text(parse_model_text(print_model_text(parse_model_text(text)))));
      changes = changes || text != text_of(model, "spec");
    }
    // q·k of attn alone is score's own place.
    EXPECT_EQ(changes, rounding != "attn:qk") << rounding;
  }
}

TEST(RoundingOfTexts, UnknownPlacesAreRefused) {
  for (const char* rounding : {"hff", "norm:rx", "nrm:xr", "hf,norm:", "norm:xr+"})
    EXPECT_EQ(label_of([&] { text_of("llama", rounding); }),
              std::string(rounding) == "hf,norm:" ? "" : "rounding_places")
        << rounding;
  EXPECT_EQ(label_of([] { text_of("llama,ffn=gelu-erf", "hidden:inner"); }), "rounding_places");
  EXPECT_EQ(label_of([] { text_of("llama,ffn=gelu-erf", "hf"); }), "");
}

}  // namespace
}  // namespace shardproof
