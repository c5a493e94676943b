#include "weights/text/writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof {
namespace {

class Writer {
 public:
  Writer(const ModelConfig& config, WeightType weights)
      : c_(config),
        weights_(weights),
        gated_(has_weight(config, "w_up")),
        base2_(config.softmax == Softmax::base2) {}

  std::string write() {
    head_of_text();
    embedding();
    layer();
    head();
    return text_;
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  bool has(std::string_view weight) const { return has_weight(c_, weight, weights_); }

  void head_of_text() {
    say("model {}", print_model(c_).substr(0, print_model(c_).find(',')));
    for (const char* dim : {"E d_model", "F d_ff", "H query heads", "K key and value heads",
                            "G = H // K", "Q d_head", "V vocabulary"})
      say("dim {}", dim);
    if (rotates(c_)) say("dim P positions");
    say("number eps");
    if (c_.embed_scale != 1.0F) say("number embed_scale");
    if (!base2_) say("number attend_scale = 1 / sqrt(Q)");
    if (scaled_logits()) say("number logit_scale");
    if (rotates(c_)) {
      say("number rotary");
      say("number theta");
    }
    std::vector<std::string> small{
        fmt::format("layers={}", c_.layers), fmt::format("E={}", c_.E),
        fmt::format("F={}", c_.F),           fmt::format("H={}", c_.H),
        fmt::format("K={}", c_.K),           fmt::format("Q={}", c_.Q),
        fmt::format("V={}", c_.V),           fmt::format("eps={}", eps_of_norms(c_))};
    if (c_.embed_scale != 1.0F)
      small.push_back(fmt::format("embed_scale={}", static_cast<double>(c_.embed_scale)));
    if (scaled_logits())
      small.push_back(fmt::format("logit_scale={}", static_cast<double>(scale_of_logits(c_))));
    if (rotates(c_)) {
      small.push_back(fmt::format("P={}", c_.positions));
      small.push_back(
          fmt::format("rotary={}", std::llround(c_.rotary * static_cast<double>(c_.Q))));
      small.push_back(fmt::format("theta={}", c_.theta));
    }
    say("small {}", fmt::join(small, ", "));
  }

  bool scaled_logits() const { return scale_of_logits(c_) != 1.0F; }

  void embedding() {
    say("\nembedding");
    say("weight table : VE from embed");
    if (!c_.tied) say("weight unembed : VE is table");
    if (rotates(c_))
      for (const auto& [name, kind] :
           {std::pair{"rope_cos", "cosines"}, std::pair{"rope_sin", "sines"}})
        say("weight {} : PQ is {} {} rotary theta", name, kind, to_string(c_.rope));
    if (has("alibi_slopes")) say("weight alibi_slopes : H is slopes");
    say("embed : BLE = store({})", c_.embed_scale != 1.0F
                                       ? "mul(gather(table, ids, V), embed_scale)"
                                       : "gather(table, ids, V)");
    say("far : BLM = sub(slot, pos)");
    say("see : BLM = within(far, -inf, 0)");
    if (rotates(c_)) {
      say("cos : BLQ = gather(rope_cos, pos, P)");
      say("sin : BLQ = gather(rope_sin, pos, P)");
    }
  }

  /// A norm of `x`, its statistics as named values.
  void norm(const std::string& name, const std::string& x, std::string_view kind) {
    const auto statistic = [&](std::string_view which) { return statistic_row(name, which).name; };
    say("weight g_{} : E is {} from {}", name, kind, name);
    std::string d = x;
    if (c_.norm == Norm::layernorm) {
      say("{} : BL = sum({}, E)", statistic("sum"), x);
      say("{} : BL = div({}, E)", statistic("mu"), statistic("sum"));
      d = statistic("d");
      say("{} : BLE = sub({}, {})", d, x, statistic("mu"));
    }
    say("{} : BL = einsum(BLE,BLE->BL; {}, {})", statistic("ss"), d, d);
    std::string y = fmt::format("mul(mul({}, div(1, sqrt(add(div({}, E), eps)))), g_{})", d,
                                statistic("ss"), name);
    if (has(name + "_bias")) {
      say("weight {}_bias : E", name);
      y = fmt::format("add({}, {}_bias)", y, name);
    }
    say("{} : BLE = store({})", name, y);
  }

  /// A contraction with its int8 scale and its biases, each rounded to f32 before the next.
  void product(const std::string& name, const std::string& spec, const std::string& operands,
               const std::vector<std::string>& biases, const std::string& scale) {
    const std::string letters =
        spec.substr(spec.find("->") + 2, 0) + spec.substr(spec.rfind("->") + 2);
    std::string x = fmt::format("einsum({}; {})", spec, operands);
    const auto step = [&](const std::string& prefix, const std::string& expression) {
      say("{}_{} : {} = {}", prefix, name, letters, expression);
      return prefix + "_" + name;
    };
    if (has(scale)) {
      say("weight {} : {}", scale, letters.substr(2));
      x = fmt::format("mul({}, {})", step("raw", x), scale);
    }
    bool biased = has(scale);
    int count = 0;
    for (const std::string& bias : biases) {
      if (!has(bias)) continue;
      say("weight {} : {}", bias, letters.substr(2));
      const std::string prefix = count == 0 ? (biased ? "scaled" : "raw") : "biased";
      x = fmt::format("add({}, {})", step(prefix, x), bias);
      ++count;
    }
    say("{} : {} = store({})", name, letters, x);
  }

  void attention(const std::string& x) {
    for (const auto& [name, head] :
         {std::pair{'q', 'H'}, std::pair{'k', 'K'}, std::pair{'v', 'K'}}) {
      say("weight w{} : E{}Q", name, head);
      product(std::string(1, name), fmt::format("BLE,E{}Q->BL{}Q", head, head),
              fmt::format("{}, w{}", x, name), {fmt::format("b{}", name)},
              fmt::format("w{}_scale", name));
    }
    if (rotates(c_))
      for (const auto& [name, head] : {std::pair{'q', 'H'}, std::pair{'k', 'K'}})
        say("{0}_rot : BL{1}Q = store(add(mul({0}, cos), mul(turn({0}, Q, {2} rotary), sin)))",
            name, head, to_string(c_.rope));
    const std::string q = rotates(c_) ? "q_rot" : "q", k = rotates(c_) ? "k_rot" : "k";
    const auto cached = [&](const std::string& value) {
      return c_.cache == CacheType::bf16 ? fmt::format("bf16({})", value) : value;
    };
    say("k_cache : BMKQ = append({}, pos)", cached(k));
    say("v_cache : BMKQ = append({}, pos)", cached("v"));
    say("raw_score : BLKGM where see = einsum(BLKGQ,BMKQ->BLKGM; split_dim({}, H->KG), k_cache)",
        q);
    std::string score = "merge_dim(raw_score, KG->H)";
    if (!base2_) score = fmt::format("mul({}, attend_scale)", score);
    if (has("alibi_slopes")) score = fmt::format("add({}, mul(alibi_slopes, far))", score);
    say("score : BLHM = {}", score);
    say("max : BLH = max(score, M)");
    say("less : BLHM = sub(score, max)");
    say("exp : BLHM = {}(less)", base2_ ? "exp2" : "exp");
    say("denom : BLH = sum(exp, M)");
    say("raw_attn : BLKGQ = einsum(BLKGM,BMKQ->BLKGQ; split_dim(exp, H->KG), v_cache)");
    say("attn : BLHQ = store(div(merge_dim(raw_attn, KG->H), denom))");
  }

  void ffn(const std::string& x) {
    say("weight w_gate : EF");
    product("gate", "BLE,EF->BLF", x + ", w_gate", {"b_gate"}, "w_gate_scale");
    const bool swish = c_.ffn == Ffn::swiglu;
    const char* function = swish ? "silu" : c_.ffn == Ffn::gelu_erf ? "gelu" : "gelu_tanh";
    say("act : BLF = {}({})", function, base2_ && swish ? "mul(gate, 2)" : "gate");
    if (gated_) {
      say("weight w_up : EF");
      product("up", "BLE,EF->BLF", x + ", w_up", {"b_up"}, "w_up_scale");
    }
    say("hidden : BLF = store({})", gated_ ? "mul(act, up)" : "act");
  }

  void layer() {
    say("\nlayer");
    norm("norm", "in", "gain");
    attention("norm");
    say("weight wo : HQE");
    if (c_.block == Block::parallel) {
      ffn("norm");
      say("weight w_out : FE");
      product("block_out", "BLHQ,HQE->BLE + BLF,FE->BLE", "attn, wo; hidden, w_out",
              {"bo", "b_out"}, "block_out_scale");
      say("out : BLE = store(add(in, block_out))");
      return;
    }
    product("attn_out", "BLHQ,HQE->BLE", "attn, wo", {"bo"}, "wo_scale");
    say("mid : BLE = store(add(in, attn_out))");
    norm("norm2", "mid", "gain");
    ffn("norm2");
    say("weight w_out : FE");
    product("ffn_out", "BLF,FE->BLE", "hidden, w_out", {"b_out"}, "w_out_scale");
    say("out : BLE = store(add(mid, ffn_out))");
  }

  void head() {
    say("\nhead");
    norm("final_norm", "in", "gain");
    std::string x =
        fmt::format("einsum(BLE,VE->BLV; final_norm, {})", c_.tied ? "table" : "unembed");
    const auto step = [&](std::string_view name) {
      say("{} : BLV = {}", name, x);
      x = name;
    };
    if (scaled_logits()) {
      step("raw_logits");
      x = "mul(raw_logits, logit_scale)";
    }
    if (c_.unembed_bias) {
      say("weight unembed_bias : V");
      step("scaled_logits");
      x = "add(scaled_logits, unembed_bias)";
    }
    say("logits : BLV = {}", x);
  }

  const ModelConfig& c_;
  WeightType weights_;
  bool gated_, base2_;
  std::string text_;
};

}  // namespace

std::string text_of_model(const ModelConfig& config, WeightType weights) {
  return Writer(config, weights).write();
}

}  // namespace shardproof
