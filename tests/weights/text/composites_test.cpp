// Composites: what a text's lines are as a whole, of models of keys and of lines that are nearly
// such.
#include "weights/text/composites.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weights/model/model_config.h"
#include "weights/model/registry.h"
#include "weights/text/block_terms.h"
#include "weights/text/writer.h"

namespace shardproof {
namespace {

using Kind = CompositeKind;

using ByName = std::map<std::string, Composite>;

ByName by_name(const NamedComposites& all) { return {all.begin(), all.end()}; }

ByName of_keys(const std::string& keys, NumberFormat weights = NumberFormat::f32) {
  return by_name(composites_of(parse_model(keys), weights));
}

/// Prints a composite: "norm in | norm | norm_bias | E", "product norm | wq | bq | wq_scale | E".
std::string shown(const Composite& of) {
  static constexpr const char* kKinds[] = {"lookup",      "norm",  "product",    "rotation",
                                           "cache",       "score", "maximum",    "exponential",
                                           "denominator", "mean",  "activation", "addition"};
  std::string text = kKinds[static_cast<std::size_t>(of.kind)];
  for (const std::string& operand : of.operands) text += " " + operand;
  for (const auto* names : {&of.weights, &of.biases}) {
    if (!names->empty()) text += " |";
    for (const std::string& name : *names) text += " " + name;
  }
  if (!of.scale.empty()) text += " | " + of.scale;
  if (!of.contracted.empty()) text += " |";
  for (const std::string& letters : of.contracted) text += " " + letters;
  return text;
}

void expect_shown(const ByName& all, const std::map<std::string, std::string>& wanted) {
  for (const auto& [name, text] : wanted) EXPECT_EQ(shown(all.at(name)), text) << name;
}

TEST(Composites, OfASerialModelByEye) {
  expect_shown(of_keys("llama"), {{"embed", "lookup | embed | V"},
                                  {"norm", "norm in | norm | E"},
                                  {"k", "product norm | wk | E"},
                                  {"q_rot", "rotation q | rope_cos rope_sin"},
                                  {"v_cache", "cache v"},
                                  {"k_cache", "cache k_rot"},
                                  {"score", "score q_rot k_cache | Q"},
                                  {"max", "maximum score"},
                                  {"exp", "exponential score max"},
                                  {"denom", "denominator exp | M"},
                                  {"attn", "mean exp denom v_cache | M"},
                                  {"attn_out", "product attn | wo | HQ"},
                                  {"mid", "addition in attn_out"},
                                  {"norm2", "norm mid | norm2 | E"},
                                  {"hidden", "activation gate up"},
                                  {"out", "addition mid ffn_out"},
                                  {"final_norm", "norm in | final_norm | E"},
                                  {"logits", "product final_norm | unembed | E"}});
}

TEST(Composites, OfAParallelBlockWithBiasesAndScales) {
  const std::string keys =
      "palm-tiny,bias=all,norm=layernorm,embed_scale=2,unembed_bias=true,rope=alibi";
  expect_shown(of_keys(keys, NumberFormat::int8),
               {{"embed", "lookup | embed | embed_scale | V"},
                {"norm", "norm in | norm | norm_bias | E"},
                {"q", "product norm | wq | bq | wq_scale | E"},
                {"score", "score q k_cache | alibi_slopes | Q"},
                {"block_out", "product attn hidden | wo w_out | bo b_out | block_out_scale | HQ F"},
                {"out", "addition in block_out"},
                {"logits", "product final_norm | embed | unembed_bias | logit_scale | E"}});
  const ModelConfig config = parse_model(keys);
  expect_shown(by_name(block_terms_of(config, NumberFormat::int8)),
               {{"attn_out", "product attn | wo | bo | block_out_scale | HQ"},
                {"ffn_out", "product hidden | w_out | b_out | block_out_scale | F"}});
  EXPECT_EQ(block_terms_of(config, NumberFormat::f32).size(), 2U);
  EXPECT_EQ(block_terms_of(config, NumberFormat::f32)[0].second.scale, "");
  EXPECT_TRUE(block_terms_of(parse_model("llama"), NumberFormat::f32).empty());
  EXPECT_TRUE(is_block_term("attn_out", config));
  EXPECT_FALSE(is_block_term("block_out", config));
  EXPECT_FALSE(is_block_term("attn_out", parse_model("llama")));
}

// Every model of keys is composites alone, and their operands and weights are the model's.
TEST(Composites, OfKeysAreAllThereIs) {
  for (const char* block : {"serial", "parallel"})
    for (const char* norm : {"rmsnorm", "layernorm"})
      for (const char* ffn : {"swiglu", "geglu", "gelu", "gelu-erf"})
        for (const char* rope : {"half", "interleaved", "alibi", "none"})
          for (const char* rest : {"", ",softmax=base2", ",bias=all,cache=bf16", ",tied=false"})
            for (const NumberFormat weights : {NumberFormat::f32, NumberFormat::int8}) {
              const std::string keys = std::string("palm-tiny,block=") + block + ",norm=" + norm +
                                       ",ffn=" + ffn + ",rope=" + rope + rest;
              const ModelConfig config = parse_model(keys);
              const ByName all = by_name(composites_of(config, weights));
              for (const CheckpointSpec& spec : checkpoint_specs(config)) {
                if (spec.integer) continue;
                ASSERT_TRUE(all.contains(spec.name)) << keys << ": " << spec.name;
                const Composite& own = all.at(spec.name);
                for (const std::string& operand : own.operands)
                  EXPECT_TRUE(operand == "in" || all.contains(operand)) << keys << operand;
                for (const auto* names : {&own.weights, &own.biases})
                  for (const std::string& name : *names)
                    EXPECT_TRUE(has_weight(config, name, weights)) << keys << ": " << name;
              }
              EXPECT_EQ(all.at("score").weights.size(), rope == std::string("alibi") ? 1U : 0U);
              EXPECT_EQ(all.at("hidden").operands.size(), ffn[0] == 'g' && ffn[2] == 'l' ? 1U : 2U)
                  << keys;
            }
}

// What is stored in between is a value of its own: engines that round there compute it apart.
TEST(Composites, EndAtWhatIsStored) {
  const std::pair<const char*, const char*> rows[] = {{"rope:tables", "q_rot"},
                                                      {"norm:r", "norm2"},
                                                      {"score:qk", "score"},
                                                      {"exp:difference", "exp"},
                                                      {"hidden:act", "hidden"}};
  for (const auto& [rounding, name] : rows) {
    const std::string text = text_of_model(parse_model("llama"), NumberFormat::f32, rounding);
    const ByName all = by_name(composites_of(parse_model_text(text)));
    EXPECT_FALSE(all.contains(name)) << rounding;
    EXPECT_TRUE(all.contains("v")) << rounding;
  }
}

TEST(Composites, OfRotatedChannels) {
  const NamedComposites all = composites_of(parse_model("llama"), NumberFormat::f32);
  for (const char* name : {"q", "k", "q_rot", "k_rot", "k_cache"})
    EXPECT_TRUE(is_rotated(all, name)) << name;
  for (const char* name : {"v", "v_cache", "score", "norm", "nothing"})
    EXPECT_FALSE(is_rotated(all, name)) << name;
  EXPECT_FALSE(is_rotated(composites_of(parse_model("falcon,rope=alibi"), NumberFormat::f32), "q"));
}

// The registry's rows say of each value what its line in the text of every model says.
TEST(Composites, AreWhatTheRegistrySays) {
  std::set<std::string> seen;
  for (const char* keys :
       {"palm-tiny", "llama", "gptj", "falcon", "palm-tiny,bias=all,norm=layernorm,rope=alibi",
        "llama,bias=all,norm=layernorm,block=parallel,softmax=base2"}) {
    const ModelConfig config = parse_model(keys);
    const ModelText text = parse_model_text(text_of_model(config, NumberFormat::f32));
    const ByName all = by_name(composites_of(config, NumberFormat::f32));
    for (const TextSection section : kTextSections)
      for (const TextLine& line : text.section(section).lines) {
        const ValueRow* const row = value_row(line.name);
        if (row == nullptr || !all.contains(line.name)) continue;
        const Kind kind = all.at(line.name).kind;
        const std::string of = std::string(keys) + ": " + line.name;
        const bool in_head = section == TextSection::head;
        // Programs compute the last row of each sequence alone.
        EXPECT_EQ(row->dims, line.name == "logits" ? "BV" : line.letters) << of;
        EXPECT_EQ(row->per_layer, section == TextSection::layer) << of;
        EXPECT_EQ(row->stored, line.expression.op == ModelOp::store || kind == Kind::cache) << of;
        EXPECT_EQ(row->cache, kind == Kind::cache) << of;
        EXPECT_EQ(row->acc, kind == Kind::product && !in_head) << of;
        EXPECT_EQ(row->contraction, kind == Kind::lookup || kind == Kind::product ||
                                        kind == Kind::score || kind == Kind::denominator ||
                                        kind == Kind::mean)
            << of;
        EXPECT_EQ(row->wire_rounds, kind == Kind::lookup || row->acc) << of;
        EXPECT_TRUE(row->in_model(config)) << of;
        seen.insert(line.name);
      }
    for (const ValueRow& row : all_values()) {
      const std::string name(row.name), norm(row.norm);
      if (row.kind == ValueKind::checkpoint && !row.integer) {
        EXPECT_EQ(row.in_model(config), all.contains(name)) << keys << ": " << name;
      }
      if (all.contains(norm)) {
        EXPECT_EQ(all.at(norm).kind, Kind::norm) << name;
      }
    }
  }
  EXPECT_EQ(seen.size(), 25U);
}

/// Returns the composites of llama's text with one piece of it replaced.
ByName changed(const std::string& from, const std::string& to) {
  const ModelConfig config = parse_model("llama");
  std::string text = text_of_model(config, NumberFormat::f32);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return by_name(composites_of(parse_model_text(text.replace(at, from.size(), to))));
}

// A line that differs in one op, operand, constant, letter or mask is none of them.
TEST(Composites, WhatIsNearlyOneIsNone) {
  struct Row {
    const char *name, *from, *to;
  };
  for (const Row& row : std::vector<Row>{
           {"embed", "gather(table, ids, V)", "abs(gather(table, ids, V))"},
           {"norm", "einsum(BLE,BLE->BL; in, in)", "einsum(BLE,BLE->BL; in, embed)"},
           {"norm", "add(div(ss, E), eps)", "sub(div(ss, E), eps)"},
           {"norm", "div(ss, E)", "div(ss, F)"},
           {"norm2", "mul(mid, div(1, sqrt", "mul(in, div(1, sqrt"},
           {"norm2", "div(1, sqrt(add(div(ss2", "div(2, sqrt(add(div(ss2"},
           {"q", "einsum(BLE,EHQ->BLHQ; norm, wq)", "einsum(BLE,EHQ->BLHQ; norm, abs(wq))"},
           {"q_rot", "mul(turn(q, Q, half rotary), sin)", "mul(turn(q, Q, half Q), sin)"},
           {"k_rot", "add(mul(k, cos)", "sub(mul(k, cos)"},
           {"v_cache", "append(v, pos)", "append(abs(v), pos)"},
           {"score", "within(far, -inf, 0)", "within(far, -inf, 1)"},
           {"score", "sub(slot, pos)", "sub(pos, slot)"},
           {"score", "mul(merge_dim(raw_score, KG->H), attend_scale)",
            "add(merge_dim(raw_score, KG->H), attend_scale)"},
           {"max", "max(score, M)", "max(abs(score), M)"},
           {"exp", "sub(score, max)", "add(score, max)"},
           {"exp", "exp(less)", "log(less)"},
           {"attn", "div(merge_dim(raw_attn, KG->H), denom)",
            "mul(merge_dim(raw_attn, KG->H), denom)"},
           {"hidden", "silu(gate)", "tanh(gate)"},
           {"out", "add(mid, ffn_out)", "sub(mid, ffn_out)"},
       }) {
    EXPECT_FALSE(changed(row.from, row.to).contains(row.name)) << row.from << " -> " << row.to;
  }
  EXPECT_FALSE(changed("where see", "").contains("score"));
  // The same form of another weight, and another form.
  EXPECT_EQ(shown(changed("mul(act, up)", "add(act, up)").at("hidden")), "addition act up");
  EXPECT_EQ(shown(changed("mul(q, cos)", "mul(q, sin)").at("q_rot")),
            "rotation q | rope_sin rope_sin");
}

}  // namespace
}  // namespace shardproof
