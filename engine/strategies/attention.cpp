// Attention of a layer program: projections, rotation, cache and softmax, in either layout.
#include "engine/strategies/layer_builder.h"

namespace shardproof {
namespace {

const Axes kX = Axes::parse("x");
const Axes kZYX = Axes::parse("zyx");

}  // namespace

std::string LayerBuilder::attention(const std::string& xn) {
  const std::string q = query(xn);
  const std::string k = key_or_value("k", xn);
  const std::string v = key_or_value("v", xn);
  return attention_output(tail(q, k, v));
}

/// The stored queries, in the layout attention wants: `BLH_zyxQ` or `B_zyxLHQ`.
std::string LayerBuilder::query(const std::string& xn) {
  std::string q;
  const std::vector<std::string> b = bias("bq");
  const std::string S = p_.raw("q", !b.empty());
  switch (ffn_) {
    case FfnLayout::ws1d:
      p_.line("q : BLH_zyxQ = einsum(BLE,EHQ->BLHQ; {}, wq) is {}", xn, S);
      q = p_.stored("q", "BLH_zyxQ", "q", b);
      break;
    case FfnLayout::ws2d:
      p_.line("q : BLH_zyQ partialsum-x = einsum(BLE,EHQ->BLHQ; {}, wq) is {}", xn, S);
      p_.line("qr : BLH_zyxQ = reduce_scatter(q, H, x) is {}", S);
      q = p_.stored("qr", "BLH_zyxQ", "q", b);
      break;
    case FfnLayout::wg_xyz: {
      const std::string w = gathered("wq", "{0}{1}Q", 'H', kZYX.without(kX));
      p_.line("q : B_zyxLHQ = einsum(BLE,EHQ->BLHQ; {}, {}) is {}", xn, w, S);
      return p_.stored("q", "B_zyxLHQ", "q", b);
    }
  }
  if (!batch_) return q;
  p_.line("qb : B_zyxLHQ = all_to_all({}, H->B, zyx) is q", q);
  return "qb";
}

/// The stored keys (or values): `BLK_πQ` over heads, `B_zyxLKQ` over batch, π the axes of K.
std::string LayerBuilder::key_or_value(const std::string& k, const std::string& xn) {
  const std::vector<std::string> b = bias("b" + k);
  const std::string S = p_.raw(k, !b.empty());
  const auto einsum = [&](const std::string& layout, const std::string& x, const std::string& w) {
    p_.line("{} : {} = einsum(BLE,EKQ->BLKQ; {}, {}) is {}", k, layout, x, w, S);
  };
  const auto stored = [&](const std::string& name, const std::string& layout) {
    return p_.stored(name, layout, k, b);
  };
  const bool sharded = kv_.has(Axis::z);              // π is a prefix of zyx
  const Axes rest = kv_.without(kX);                  // as the resident weight has it
  const Axes unused = kZYX.without(kX).without(kv_);  // of zy, not in π
  const std::string w = "w" + k;

  if (ffn_ == FfnLayout::wg_xyz) {
    einsum("B_zyxLKQ", xn, gathered(w, "{0}{1}Q", 'K', rest));
    return stored(k, "B_zyxLKQ");
  }
  if (ffn_ == FfnLayout::ws1d) {
    if (!batch_) {
      einsum(fmt::format("BL{}Q", dim('K', kv_)), xn, w);
      return stored(k, fmt::format("BL{}Q", dim('K', kv_)));
    }
    if (!sharded) {  // slice first: no waste in the projection
      p_.line("x{} : B_zyxLE = slice({}, B, zyx) is norm", k, xn);
      einsum("B_zyxLKQ", "x" + k, w);
      return stored(k, "B_zyxLKQ");
    }
    einsum(fmt::format("BL{}Q", dim('K', kv_)), xn, w);
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
    einsum(partial, xn, w);
    const std::string layout = fmt::format("BL{}Q", dim('K', kv_));
    if (kv_.has(Axis::x))
      p_.line("{}r : {} = reduce_scatter({}, K, x) is {}", k, layout, k, S);
    else
      p_.line("{}r : {} = all_reduce({}, x) is {}", k, layout, k, S);
    return stored(k + "r", layout);
  }
  if (kv_.has(Axis::x)) {
    einsum(partial, xn, w);
    p_.line("{}r : BLK_zyxQ = reduce_scatter({}, K, x) is {}", k, k, S);
    const std::string value = stored(k + "r", "BLK_zyxQ");
    p_.line("{}b : B_zyxLKQ = all_to_all({}, K->B, zyx) is {}", k, value, k);
    return k + "b";
  }
  if (!sharded) {  // slice first: no waste in the projection
    p_.line("x{} : B_zyLE_x = slice({}, B, zy) is norm", k, xn);
    einsum("B_zyLKQ partialsum-x", "x" + k, w);
    p_.line("{}r : B_zyxLKQ = reduce_scatter({}, B, x) is {}", k, k, S);
    return stored(k + "r", "B_zyxLKQ");
  }
  // Move before reducing: x must end up minor in B.
  einsum(partial, xn, w);
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

/// The axes of K where the stored keys and values take their biases.
Axes LayerBuilder::kv_bias_axes() const {
  if (ffn_ == FfnLayout::wg_xyz) return Axes();
  const bool before_the_batch_is_split =
      ffn_ == FfnLayout::ws1d ? kv_.has(Axis::z) : kv_.has(Axis::x);
  return !batch_ || before_the_batch_is_split ? kv_ : Axes();
}

/// The stored rotation of queries or keys; the value itself in a model without.
std::string LayerBuilder::rotated(const std::string& name, const std::string& value,
                                  const std::string& layout, const std::string& pos,
                                  std::string_view checkpoint) {
  if (config_.rope == Rope::none) return value;
  p_.line("{} : {} = {}({}, {}, cos, sin) is {}", name, layout,
          config_.rope == Rope::half ? "rope" : "rope_interleaved", value, pos,
          p_.unstored(checkpoint));
  return p_.stored(name, layout, checkpoint);
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
  const std::string q_rot = rotated("qp", q, query, pos, "q_rot");
  const std::string k_rot = rotated("kp", k, key, pos, "k_rot");
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

}  // namespace shardproof
