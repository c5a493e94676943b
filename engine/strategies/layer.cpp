#include <algorithm>

#include "engine/strategies/layer_builder.h"
#include "weights/registry.h"

namespace shardproof {
namespace {

const Axes kX = Axes::parse("x");
const Axes kZY = Axes::parse("zy");
const Axes kZYX = Axes::parse("zyx");

bool has_weight(const ModelConfig& config, const std::string& name) {
  const std::vector<WeightSpec> specs = weight_specs(config);
  return std::any_of(specs.begin(), specs.end(),
                     [&](const WeightSpec& spec) { return spec.name == "layer0." + name; });
}

}  // namespace

LayerBuilder::LayerBuilder(const Strategy& strategy, const Axes& kv, const ModelConfig& config,
                           ActType act)
    : ffn_(strategy.ffn),
      batch_(strategy.attention == AttentionLayout::batch),
      kv_(kv),
      config_(config),
      p_("layer", act),
      residual_(residual_layout(strategy).to_string()),
      cache_(cache_layout(strategy, kv).to_string()) {}

Program LayerBuilder::build() {
  inputs();
  const std::string xn = normalise("x", "in", "");
  const std::string o = attention(xn);
  std::string out;
  if (config_.block == Block::parallel) {
    const std::string a = feed_forward(xn);
    out = add("out", "x", project("y", "block_out", o, a));
  } else {
    const std::string mid = add("mid", "x", project("y", "attn_out", o, ""));
    const std::string a = feed_forward(normalise(mid, "mid", "2"));
    out = add("out", mid, project("z", "ffn_out", "", a));
  }
  p_.line("output {}, kc, vc", out);
  return p_.program();
}

void LayerBuilder::inputs() {
  const bool whole_e = ffn_ == FfnLayout::ws1d;
  const bool gathers = ffn_ == FfnLayout::wg_xyz;
  const Axes wide = whole_e ? kZYX : kZY;
  const Axes kv = whole_e ? kv_ : kv_.without(kX);
  const std::string E = whole_e ? "E" : "E_x";
  p_.line("input x : {} is in", residual_);
  for (const char* behind : {"", "2"})
    if (*behind == '\0' || config_.block == Block::serial)
      norm_inputs(p_, config_, {"", "", ffn_ == FfnLayout::ws2d ? kX : Axes(), "", behind, false});
  p_.line("input wq : {}{}Q is weight wq", E, dim('H', wide));
  p_.line("input wk : {}{}Q is weight wk", E, dim('K', kv));
  p_.line("input wv : {}{}Q is weight wv", E, dim('K', kv));
  p_.line("input wo : {}Q{} is weight wo", dim('H', wide), E);
  p_.line("input w_gate : {}{} is weight w_gate", E, dim('F', wide));
  if (has_weight(config_, "w_up")) p_.line("input w_up : {}{} is weight w_up", E, dim('F', wide));
  p_.line("input w_out : {}{} is weight w_out", dim('F', wide), E);
  // Biases rest as they are added: there is little of them.
  const Axes all = gathers ? Axes() : kZYX;
  const std::string on_residual = residual_.substr(residual_.rfind('E'));
  for (const auto& [name, layout] : {std::pair<std::string, std::string>{"bq", dim('H', all) + "Q"},
                                     {"bk", dim('K', kv_bias_axes()) + "Q"},
                                     {"bv", dim('K', kv_bias_axes()) + "Q"},
                                     {"bo", on_residual},
                                     {"b_gate", dim('F', all)},
                                     {"b_up", dim('F', all)},
                                     {"b_out", on_residual}})
    if (has_weight(config_, name)) p_.line("input {} : {} is weight {}", name, layout, name);
  if (config_.rope != Rope::none) {
    p_.line("input cos : PJ is weight rope_cos");
    p_.line("input sin : PJ is weight rope_sin");
  }
  p_.line("input pos : BL is input pos");
  p_.line("input k_old : {} is previous k_cache", cache_);
  p_.line("input v_old : {} is previous v_cache", cache_);
}

std::vector<std::string> LayerBuilder::bias(const std::string& name) const {
  return has_weight(config_, name) ? std::vector{name} : std::vector<std::string>{};
}

std::string LayerBuilder::normalise(const std::string& x, std::string_view what,
                                    const std::string& behind) {
  const std::string xg = "xg" + behind;
  switch (ffn_) {
    case FfnLayout::ws1d:
      p_.line("{} : BLE = all_gather({}, E, xzy) is {}", xg, x, what);
      return norm_lines(p_, config_, {xg, "BLE", Axes(), "", behind, false});
    case FfnLayout::ws2d:
      p_.line("{} : BLE_x = all_gather({}, E, zy) is {}", xg, x, what);
      return norm_lines(p_, config_, {xg, "BLE_x", kX, "", behind, false});
    default:
      return norm_lines(p_, config_, {x, "B_zyxLE", Axes(), "", behind, false});
  }
}

std::string LayerBuilder::gathered(const std::string& w, fmt::string_view form, char letter,
                                   const Axes& axes) {
  const auto layout = [&](std::string_view e, const Axes& other) {
    return fmt::format(fmt::runtime(form), e, dim(letter, other));
  };
  p_.line("{}_e : {} = all_gather({}, E, x) is weight {}", w, layout("E", axes), w, w);
  if (axes.empty()) return w + "_e";
  p_.line("{}_g : {} = all_gather({}_e, {}, {}) is weight {}", w, layout("E", Axes()), w, letter,
          axes.to_string(), w);
  return w + "_g";
}

/// The FFN up to its activation; the stored hidden as W_out wants it.
std::string LayerBuilder::feed_forward(const std::string& xn) {
  const std::string layout = ffn_ == FfnLayout::wg_xyz ? "B_zyxLF" : "BLF_zyx";
  const auto projection = [&](std::string name, const std::string& w, const std::string& b) {
    const std::string S = p_.raw(w, !bias(b).empty());
    switch (ffn_) {
      case FfnLayout::ws1d:
        p_.line("{} : BLF_zyx = einsum(BLE,EF->BLF; {}, w_{}) is {}", name, xn, w, S);
        break;
      case FfnLayout::ws2d:
        p_.line("{} : BLF_zy partialsum-x = einsum(BLE,EF->BLF; {}, w_{}) is {}", name, xn, w, S);
        p_.line("{}r : BLF_zyx = reduce_scatter({}, F, x) is {}", name, name, S);
        name += "r";
        break;
      case FfnLayout::wg_xyz: {
        const std::string whole = gathered("w_" + w, "{0}{1}", 'F', kZY);
        p_.line("{} : B_zyxLF = einsum(BLE,EF->BLF; {}, {}) is {}", name, xn, whole, S);
        break;
      }
    }
    return p_.stored(name, layout, w, bias(b));
  };
  const std::string gate = projection("h", "gate", "b_gate");
  std::string call;
  switch (config_.ffn) {
    case Ffn::swiglu:
    case Ffn::geglu:
      call = fmt::format("{}({}, {})", config_.ffn == Ffn::swiglu ? "swiglu" : "geglu", gate,
                         projection("u", "up", "b_up"));
      break;
    case Ffn::gelu:
    case Ffn::gelu_erf:
      call = fmt::format("{}({})", config_.ffn == Ffn::gelu ? "gelu" : "gelu_erf", gate);
      break;
  }
  p_.line("a : {} = {} is {}", layout, call, p_.unstored("hidden"));
  const std::string a = p_.stored("a", layout, "hidden");
  if (ffn_ != FfnLayout::ws2d) return a;
  p_.line("ag : BLF_zy = all_gather({}, F, x) is hidden", a);
  return "ag";
}

std::string LayerBuilder::project(const std::string& y, std::string_view name, const std::string& o,
                                  const std::string& a) {
  // A parallel block's two branches are one contraction, rounded once.
  std::string spec, operands;
  std::vector<std::string> biases;
  const auto term = [&](const std::string& value, std::string_view text, const std::string& w,
                        fmt::string_view form, char letter, const std::string& b) {
    if (value.empty()) return;
    const std::string whole = ffn_ == FfnLayout::wg_xyz ? gathered(w, form, letter, kZY) : w;
    spec += (spec.empty() ? "" : " + ") + std::string(text);
    operands += fmt::format("; {}, {}", value, whole);
    for (const std::string& vector : bias(b)) biases.push_back(vector);
  };
  term(o, "BLHQ,HQE->BLE", "wo", "{1}Q{0}", 'H', "bo");
  term(a, "BLF,FE->BLE", "w_out", "{1}{0}", 'F', "b_out");
  const std::string S = p_.raw(name, !biases.empty());
  std::string reduced = y + "r";
  switch (ffn_) {
    case FfnLayout::ws1d:
      p_.line("{} : BLE partialsum-xyz = einsum({}{}) is {}", y, spec, operands, S);
      p_.line("{} : BLE_xzy = reduce_scatter({}, E, xzy) is {}", reduced, y, S);
      break;
    case FfnLayout::ws2d:
      p_.line("{} : BLE_x partialsum-yz = einsum({}{}) is {}", y, spec, operands, S);
      p_.line("{} : BLE_xzy = reduce_scatter({}, E, zy) is {}", reduced, y, S);
      break;
    case FfnLayout::wg_xyz:
      p_.line("{} : B_zyxLE = einsum({}{}) is {}", y, spec, operands, S);
      reduced = y;
      break;
  }
  return p_.stored(reduced, residual_, name, biases);
}

std::string LayerBuilder::add(const std::string& name, const std::string& x, const std::string& y) {
  p_.line("{} : {} = add({}, {}) is {}", name, residual_, x, y, p_.unstored(name));
  return p_.stored(name, residual_, name);
}

Program build_layer(const Strategy& strategy, const Axes& kv, const ModelConfig& config,
                    ActType act) {
  return LayerBuilder(strategy, kv, config, act).build();
}

}  // namespace shardproof
