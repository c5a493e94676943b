#include "weights/text/writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "weights/model/registry.h"
#include "weights/model/rounding_places.h"
#include "weights/model/softmax.h"

namespace shardproof {
namespace {

class Writer {
 public:
  Writer(const ModelConfig& config, NumberFormat weights, std::string_view rounding)
      : c_(config),
        weights_(weights),
        rounding_(rounding),
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

  bool rounds(std::string_view formula, std::string_view place) const {
    return is_place_of(rounding_, formula, place);
  }
  /// Returns an expression that is stored if its place in a formula rounds.
  std::string at(std::string_view formula, std::string_view place, std::string expression) const {
    return rounds(formula, place) ? fmt::format("store({})", expression) : expression;
  }

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
    say("embed : BLE = store({})",
        c_.embed_scale != 1.0F
            ? fmt::format("mul(gather(table, ids, V), {})", at("embed", "scale", "embed_scale"))
            : "gather(table, ids, V)");
    say("far : BLM = sub(slot, pos)");
    say("see : BLM = within(far, -inf, 0)");
    if (rotates(c_)) {
      for (const char* name : {"cos", "sin"})
        say("{0} : BLQ = {1}", name,
            at("rope", "tables", fmt::format("gather(rope_{}, pos, P)", name)));
    }
  }

  /// A norm of `x`, its statistics as named values.
  void norm(const std::string& name, const std::string& x, std::string_view kind) {
    const auto statistic = [&](std::string_view which) { return statistic_row(name, which).name; };
    say("weight g_{} : E is {} from {}", name, kind, name);
    std::string d = x;
    if (c_.norm == Norm::layernorm) {
      say("{} : BL = sum({}, E)", statistic("sum"), x);
      say("{} : BL = {}", statistic("mu"),
          at("norm", "mu", fmt::format("div({}, E)", statistic("sum"))));
      d = statistic("d");
      say("{} : BLE = {}", d, at("norm", "d", fmt::format("sub({}, {})", x, statistic("mu"))));
    }
    say("{} : BL = einsum(BLE,BLE->BL; {}, {})", statistic("ss"), d, d);
    const std::string r =
        at("norm", "r", fmt::format("div(1, sqrt(add(div({}, E), eps)))", statistic("ss")));
    std::string y =
        fmt::format("mul({}, g_{})", at("norm", "xr", fmt::format("mul({}, {})", d, r)), name);
    if (has(name + "_bias")) {
      say("weight {}_bias : E", name);
      y = fmt::format("add({}, {}_bias)", at("norm", "xrg", y), name);
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
      say("{}_{} : {} = {}", prefix, name, letters, at("sum", "s", expression));
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
        say("{}_rot : BL{}Q = store(add({}, {}))", name, head,
            at("rope", "products", fmt::format("mul({}, cos)", name)),
            at("rope", "products",
               fmt::format("mul(turn({}, Q, {} rotary), sin)", name, to_string(c_.rope))));
    const std::string q = rotates(c_) ? "q_rot" : "q", k = rotates(c_) ? "k_rot" : "k";
    const auto cached = [&](const std::string& value) {
      return c_.cache == NumberFormat::bf16 ? fmt::format("bf16({})", value) : value;
    };
    say("k_cache : BMKQ = append({}, pos)", cached(k));
    say("v_cache : BMKQ = append({}, pos)", cached("v"));
    say("raw_score : BLKGM where see = {}",
        at("score", "qk",
           fmt::format("einsum(BLKGQ,BMKQ->BLKGM; split_dim({}, H->KG), k_cache)", q)));
    std::string score = "merge_dim(raw_score, KG->H)";
    if (!base2_) score = fmt::format("mul({}, attend_scale)", score);
    if (has("alibi_slopes")) score = fmt::format("add({}, mul(alibi_slopes, far))", score);
    say("score : BLHM = {}", at("attn", "scores", score));
    say("max : BLH = max(score, M)");
    say("less : BLHM = {}", at("exp", "difference", "sub(score, max)"));
    say("exp : BLHM = {}(less)", base2_ ? "exp2" : "exp");
    say("denom : BLH = sum(exp, M)");
    const bool shares = rounds("attn", "probs");
    std::string weight = "exp";
    if (shares) {
      say("share : BLHM = store(div(exp, denom))");
      weight = "share";
    } else if (rounds("attn", "exp")) {
      say("stored_exp : BLHM = store(exp)");
      weight = "stored_exp";
    }
    say("raw_attn : BLKGQ = einsum(BLKGM,BMKQ->BLKGQ; split_dim({}, H->KG), v_cache)", weight);
    say("attn : BLHQ = store({})",
        shares ? "merge_dim(raw_attn, KG->H)" : "div(merge_dim(raw_attn, KG->H), denom)");
  }

  /// tanh's gelu as programs write it out that round each of its operations.
  std::string stored_gelu() {
    say("square : BLF = store(mul(gate, gate))");
    say("cube : BLF = store(mul(store(mul(square, gate)), 0.044715))");
    say("bent : BLF = store(tanh(store(mul(store(add(gate, cube)), 0.7978845608028654))))");
    return "mul(store(mul(gate, 0.5)), store(add(bent, 1)))";
  }

  std::string activation() {
    const bool swish = c_.ffn == Ffn::swiglu, erf = c_.ffn == Ffn::gelu_erf;
    const std::string argument = base2_ && swish ? "mul(gate, 2)" : "gate";
    const auto places = pinned_places(rounding_, "hidden");
    // Where the set leaves it open, only tanh's gelu is written out.
    if (rounds("hidden", "inner") && (places->open == 0 || (!swish && !erf))) {
      if (erf)
        throw Error("rounding_places", "hidden:inner of gelu-erf: a text has it as one function");
      return swish ? fmt::format("mul({0}, store(sigmoid({0})))", argument) : stored_gelu();
    }
    return fmt::format("{}({})", swish ? "silu" : erf ? "gelu" : "gelu_tanh", argument);
  }

  void ffn(const std::string& x) {
    say("weight w_gate : EF");
    product("gate", "BLE,EF->BLF", x + ", w_gate", {"b_gate"}, "w_gate_scale");
    say("act : BLF = {}", at("hidden", "act", activation()));
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
      if (rounds("out", "each")) {
        product("attn_out", "BLHQ,HQE->BLE", "attn, wo", {"bo"}, "");
        product("ffn_out", "BLF,FE->BLE", "hidden, w_out", {"b_out"}, "");
        say("both : BLE = store(add(attn_out, ffn_out))");
      } else {
        product("block_out", "BLHQ,HQE->BLE + BLF,FE->BLE", "attn, wo; hidden, w_out",
                {"bo", "b_out"}, "block_out_scale");
      }
      say("out : BLE = store(add(in, {}))", rounds("out", "each") ? "both" : "block_out");
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
    // An engine that rounds its residuals rounds its logits too.
    const bool stores = rounds("out", "each");
    const auto line = [&](std::string_view name, bool is_stored) {
      say("{} : BLV = {}", name, is_stored ? fmt::format("store({})", x) : x);
      x = name;
    };
    if (scaled_logits()) {
      line("raw_logits", stores || rounds("sum", "s"));
      x = "mul(raw_logits, logit_scale)";
    }
    if (c_.unembed_bias) {
      say("weight unembed_bias : V");
      line("scaled_logits", stores || rounds("sum", "s"));
      x = "add(scaled_logits, unembed_bias)";
    }
    line("logits", stores);
  }

  const ModelConfig& c_;
  NumberFormat weights_;
  std::string_view rounding_;
  bool gated_, base2_;
  std::string text_;
};

}  // namespace

std::string text_of_model(const ModelConfig& config, NumberFormat weights,
                          std::string_view rounding) {
  require_places(rounding);
  return Writer(config, weights, rounding).write();
}

}  // namespace shardproof
