#include "engine/strategies/program_text.h"
#include "engine/strategies/programs.h"
#include "weights/error.h"

namespace shardproof {
namespace {

const Axes kX = Axes::parse("x");
const Axes kZYX = Axes::parse("zyx");

/// The parallel block of a layer (PaLM): attention and FFN of one normalised input, summed in one
/// contraction. Lines read as the paper's figures do, with the true order of every subscript.
class LayerBuilder {
 public:
  LayerBuilder(const Strategy& strategy, const Axes& kv, ActType act)
      : ffn_(strategy.ffn),
        batch_(strategy.attention == AttentionLayout::batch),
        kv_(kv),
        p_("layer", act) {
    residual_ = residual_layout(strategy).to_string();
    cache_ = cache_layout(strategy, kv).to_string();
  }

  Program build() {
    inputs();
    normalise();
    const std::string o = attention();
    const std::string a = feed_forward();
    output(o, a);
    return p_.program();
  }

 private:
  void inputs();
  void normalise();
  std::string attention();
  std::string query();
  std::string key_or_value(const std::string& k);
  std::string tail(const std::string& q, const std::string& k, const std::string& v);
  std::string attention_output(const std::string& o);
  std::string feed_forward();
  void output(const std::string& o, const std::string& a);

  /// wg-xyz: gathers a resident weight whole, right before its einsum: E over x, then `letter`.
  /// `form` is its layout with {0} for the axes of E and {1} for those of the other dim.
  std::string gathered(const std::string& w, fmt::string_view form, char letter, const Axes& axes);

  FfnLayout ffn_;
  bool batch_;
  Axes kv_;
  ProgramText p_;
  std::string residual_, cache_;
  std::string xn_;  // the stored norm
};

void LayerBuilder::inputs() {
  const bool whole_e = ffn_ == FfnLayout::ws1d;
  const Axes wide = whole_e ? kZYX : kZYX.without(kX);
  const Axes kv = whole_e ? kv_ : kv_.without(kX);
  const std::string E = whole_e ? "E" : "E_x";
  p_.line("input x : {} is in", residual_);
  p_.line("input g : E is weight norm");
  p_.line("input wq : {}{}Q is weight wq", E, dim('H', wide));
  p_.line("input wk : {}{}Q is weight wk", E, dim('K', kv));
  p_.line("input wv : {}{}Q is weight wv", E, dim('K', kv));
  p_.line("input wo : {}Q{} is weight wo", dim('H', wide), E);
  p_.line("input w_gate : {}{} is weight w_gate", E, dim('F', wide));
  p_.line("input w_up : {}{} is weight w_up", E, dim('F', wide));
  p_.line("input w_out : {}{} is weight w_out", dim('F', wide), E);
  p_.line("input cos : PJ is weight rope_cos");
  p_.line("input sin : PJ is weight rope_sin");
  p_.line("input pos : BL is input pos");
  p_.line("input k_old : {} is previous k_cache", cache_);
  p_.line("input v_old : {} is previous v_cache", cache_);
}

void LayerBuilder::normalise() {
  switch (ffn_) {
    case FfnLayout::ws1d:
      p_.line("xg : BLE = all_gather(x, E, xzy) is in");
      p_.line("ss : BL = einsum(BLE,BLE->BL; xg, xg) is stat ss");
      p_.line("xn : BLE = norm(xg, ss, g) is {}", p_.unstored("norm"));
      xn_ = p_.stored("xn", "BLE", "norm");
      break;
    case FfnLayout::ws2d:
      p_.line("xg : BLE_x = all_gather(x, E, zy) is in");
      p_.line("ss : BL partialsum-x = einsum(BLE,BLE->BL; xg, xg) is stat ss");
      p_.line("sa : BL = all_reduce(ss, x) is stat ss");
      p_.line("gx : E_x = slice(g, E, x) is weight norm");
      p_.line("xn : BLE_x = norm(xg, sa, gx) is {}", p_.unstored("norm"));
      xn_ = p_.stored("xn", "BLE_x", "norm");
      break;
    case FfnLayout::wg_xyz:
      p_.line("ss : B_zyxL = einsum(BLE,BLE->BL; x, x) is stat ss");
      p_.line("xn : B_zyxLE = norm(x, ss, g) is {}", p_.unstored("norm"));
      xn_ = p_.stored("xn", "B_zyxLE", "norm");
      break;
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

std::string LayerBuilder::attention() {
  const std::string q = query();
  const std::string k = key_or_value("k");
  const std::string v = key_or_value("v");
  return attention_output(tail(q, k, v));
}

/// The stored queries, in the layout attention wants: `BLH_zyxQ` or `B_zyxLHQ`.
std::string LayerBuilder::query() {
  std::string q;
  switch (ffn_) {
    case FfnLayout::ws1d:
      p_.line("q : BLH_zyxQ = einsum(BLE,EHQ->BLHQ; {}, wq) is {}", xn_, p_.raw("q"));
      q = p_.stored("q", "BLH_zyxQ", "q");
      break;
    case FfnLayout::ws2d:
      p_.line("q : BLH_zyQ partialsum-x = einsum(BLE,EHQ->BLHQ; {}, wq) is {}", xn_, p_.raw("q"));
      p_.line("qr : BLH_zyxQ = reduce_scatter(q, H, x) is {}", p_.raw("q"));
      q = p_.stored("qr", "BLH_zyxQ", "q");
      break;
    case FfnLayout::wg_xyz: {
      const std::string w = gathered("wq", "{0}{1}Q", 'H', kZYX.without(kX));
      p_.line("q : B_zyxLHQ = einsum(BLE,EHQ->BLHQ; {}, {}) is {}", xn_, w, p_.raw("q"));
      return p_.stored("q", "B_zyxLHQ", "q");
    }
  }
  if (!batch_) return q;
  p_.line("qb : B_zyxLHQ = all_to_all({}, H->B, zyx) is q", q);
  return "qb";
}

/// The stored keys (or values): `BLK_πQ` over heads, `B_zyxLKQ` over batch, π the axes of K.
std::string LayerBuilder::key_or_value(const std::string& k) {
  const std::string S = p_.raw(k);
  const auto einsum = [&](const std::string& layout, const std::string& x, const std::string& w) {
    p_.line("{} : {} = einsum(BLE,EKQ->BLKQ; {}, {}) is {}", k, layout, x, w, S);
  };
  const auto stored = [&](const std::string& name, const std::string& layout) {
    return p_.stored(name, layout, k);
  };
  const bool sharded = kv_.has(Axis::z);              // π is a prefix of zyx
  const Axes rest = kv_.without(kX);                  // as the resident weight has it
  const Axes unused = kZYX.without(kX).without(kv_);  // of zy, not in π
  const std::string w = "w" + k;

  if (ffn_ == FfnLayout::wg_xyz) {
    einsum("B_zyxLKQ", xn_, gathered(w, "{0}{1}Q", 'K', rest));
    return stored(k, "B_zyxLKQ");
  }
  if (ffn_ == FfnLayout::ws1d) {
    if (!batch_) {
      einsum(fmt::format("BL{}Q", dim('K', kv_)), xn_, w);
      return stored(k, fmt::format("BL{}Q", dim('K', kv_)));
    }
    if (!sharded) {  // slice first: no waste in the projection
      p_.line("x{} : B_zyxLE = slice({}, B, zyx) is norm", k, xn_);
      einsum("B_zyxLKQ", "x" + k, w);
      return stored(k, "B_zyxLKQ");
    }
    einsum(fmt::format("BL{}Q", dim('K', kv_)), xn_, w);
    std::string value = stored(k, fmt::format("BL{}Q", dim('K', kv_)));
    p_.line("{}b : {}LKQ = all_to_all({}, K->B, {}) is {}", k, dim('B', kv_), value,
            kv_.to_string(), k);
    const Axes missing = kZYX.without(kv_);
    if (missing.empty()) return k + "b";
    p_.line("{}s : B_zyxLKQ = slice({}b, B, {}) is {}", k, k, missing.to_string(), k);
    return k + "s";
  }

  const std::string partial = fmt::format("BL{}Q partialsum-x", dim('K', rest));
  if (!batch_) {
    einsum(partial, xn_, w);
    const std::string layout = fmt::format("BL{}Q", dim('K', kv_));
    if (kv_.has(Axis::x))
      p_.line("{}r : {} = reduce_scatter({}, K, x) is {}", k, layout, k, S);
    else
      p_.line("{}r : {} = all_reduce({}, x) is {}", k, layout, k, S);
    return stored(k + "r", layout);
  }
  if (kv_.has(Axis::x)) {
    einsum(partial, xn_, w);
    p_.line("{}r : BLK_zyxQ = reduce_scatter({}, K, x) is {}", k, k, S);
    const std::string value = stored(k + "r", "BLK_zyxQ");
    p_.line("{}b : B_zyxLKQ = all_to_all({}, K->B, zyx) is {}", k, value, k);
    return k + "b";
  }
  if (!sharded) {  // slice first: no waste in the projection
    p_.line("x{} : B_zyLE_x = slice({}, B, zy) is norm", k, xn_);
    einsum("B_zyLKQ partialsum-x", "x" + k, w);
    p_.line("{}r : B_zyxLKQ = reduce_scatter({}, B, x) is {}", k, k, S);
    return stored(k + "r", "B_zyxLKQ");
  }
  // Move before reducing: x must end up minor in B.
  einsum(partial, xn_, w);
  p_.line("{}b : {}LKQ partialsum-x = all_to_all({}, K->B, {}) is {}", k, dim('B', kv_), k,
          kv_.to_string(), S);
  std::string moved = k + "b";
  if (!unused.empty()) {
    p_.line("{}s : B_zyLKQ partialsum-x = slice({}, B, {}) is {}", k, moved, unused.to_string(), S);
    moved = k + "s";
  }
  p_.line("{}r : B_zyxLKQ = reduce_scatter({}, B, x) is {}", k, moved, S);
  return stored(k + "r", "B_zyxLKQ");
}

/// Rotation, cache and softmax, local in whatever layout q has; the stored attn.
std::string LayerBuilder::tail(const std::string& q, const std::string& k, const std::string& v) {
  const std::string B = batch_ ? "B_zyx" : "B";
  const std::string H = batch_ ? "H" : "H_zyx";
  const std::string query = fmt::format("{}L{}Q", B, H);
  const std::string key = fmt::format("{}L{}Q", B, batch_ ? "K" : dim('K', kv_));
  std::string pos = "pos";
  if (batch_) {
    p_.line("pb : B_zyxL = slice(pos, B, zyx) is input pos");
    pos = "pb";
  }
  p_.line("qp : {} = rope({}, {}, cos, sin) is {}", query, q, pos, p_.unstored("q_rot"));
  const std::string q_rot = p_.stored("qp", query, "q_rot");
  p_.line("kp : {} = rope({}, {}, cos, sin) is {}", key, k, pos, p_.unstored("k_rot"));
  const std::string k_rot = p_.stored("kp", key, "k_rot");
  p_.line("kc : {} = append(k_old, {}, {}) is k_cache", cache_, k_rot, pos);
  p_.line("vc : {} = append(v_old, {}, {}) is v_cache", cache_, v, pos);
  const std::string row = fmt::format("{}L{}", B, H);
  p_.line(
      "s : {0}M, m : {0}, e : {0}M, d : {0}, o : {0}Q = attend({1}, kc, vc, {2}) is score, max, "
      "exp, denom, {3}",
      row, q_rot, pos, p_.unstored("attn"));
  return p_.stored("o", query, "attn");
}

/// attn back in the layout W_O wants.
std::string LayerBuilder::attention_output(const std::string& o) {
  if (ffn_ == FfnLayout::wg_xyz) return o;
  std::string heads = o;
  if (batch_) {
    p_.line("ob : BLH_zyxQ = all_to_all({}, B->H, zyx) is attn", o);
    heads = "ob";
  }
  if (ffn_ == FfnLayout::ws1d) return heads;
  p_.line("og : BLH_zyQ = all_gather({}, H, x) is attn", heads);
  return "og";
}

/// SwiGLU; the stored hidden as W_out wants it.
std::string LayerBuilder::feed_forward() {
  std::string layout;
  std::string gate = "h";
  std::string up = "u";
  switch (ffn_) {
    case FfnLayout::ws1d:
      layout = "BLF_zyx";
      for (const auto& [name, w] : {std::pair{"h", "gate"}, {"u", "up"}})
        p_.line("{} : BLF_zyx = einsum(BLE,EF->BLF; {}, w_{}) is {}", name, xn_, w, p_.raw(w));
      break;
    case FfnLayout::ws2d:
      layout = "BLF_zyx";
      for (const auto& [name, w] : {std::pair{"h", "gate"}, {"u", "up"}}) {
        p_.line("{} : BLF_zy partialsum-x = einsum(BLE,EF->BLF; {}, w_{}) is {}", name, xn_, w,
                p_.raw(w));
        p_.line("{}r : BLF_zyx = reduce_scatter({}, F, x) is {}", name, name, p_.raw(w));
      }
      gate = "hr";
      up = "ur";
      break;
    case FfnLayout::wg_xyz:
      layout = "B_zyxLF";
      for (const auto& [name, w] : {std::pair{"h", "gate"}, {"u", "up"}}) {
        const std::string whole = gathered(fmt::format("w_{}", w), "{0}{1}", 'F', kZYX.without(kX));
        p_.line("{} : B_zyxLF = einsum(BLE,EF->BLF; {}, {}) is {}", name, xn_, whole, p_.raw(w));
      }
      break;
  }
  gate = p_.stored(gate, layout, "gate");
  up = p_.stored(up, layout, "up");
  p_.line("a : {} = swiglu({}, {}) is {}", layout, gate, up, p_.unstored("hidden"));
  const std::string a = p_.stored("a", layout, "hidden");
  if (ffn_ != FfnLayout::ws2d) return a;
  p_.line("ag : BLF_zy = all_gather({}, F, x) is hidden", a);
  return "ag";
}

/// Both branches in one contraction, rounded once; the residual is added after the reduction.
void LayerBuilder::output(const std::string& o, const std::string& a) {
  constexpr std::string_view kSpec = "BLHQ,HQE->BLE + BLF,FE->BLE";
  const std::string S = p_.raw("block_out");
  std::string y = "yr";
  switch (ffn_) {
    case FfnLayout::ws1d:
      p_.line("y : BLE partialsum-xyz = einsum({}; {}, wo; {}, w_out) is {}", kSpec, o, a, S);
      p_.line("yr : BLE_xzy = reduce_scatter(y, E, xzy) is {}", S);
      break;
    case FfnLayout::ws2d:
      p_.line("y : BLE_x partialsum-yz = einsum({}; {}, wo; {}, w_out) is {}", kSpec, o, a, S);
      p_.line("yr : BLE_xzy = reduce_scatter(y, E, zy) is {}", S);
      break;
    case FfnLayout::wg_xyz: {
      const std::string wo = gathered("wo", "{1}Q{0}", 'H', kZYX.without(kX));
      const std::string w_out = gathered("w_out", "{1}{0}", 'F', kZYX.without(kX));
      p_.line("y : B_zyxLE = einsum({}; {}, {}; {}, {}) is {}", kSpec, o, wo, a, w_out, S);
      y = "y";
      break;
    }
  }
  y = p_.stored(y, residual_, "block_out");
  p_.line("out : {} = add(x, {}) is {}", residual_, y, p_.unstored("out"));
  const std::string out = p_.stored("out", residual_, "out");
  p_.line("output {}, kc, vc", out);
}

}  // namespace

Program build_layer(const Strategy& strategy, const Axes& kv, ActType act) {
  return LayerBuilder(strategy, kv, act).build();
}

}  // namespace shardproof
