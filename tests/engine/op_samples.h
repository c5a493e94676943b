#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/program/typing.h"

namespace shardproof {

/// For each op a small program that ends in it, for the torus 2x2x1.
struct OpSample {
  OpKind kind{};
  std::string text;

  const Torus torus = Torus(2, 2, 1);
  Program program() const { return parse_program("sample", text); }

  /// Of the inputs, by their letters.
  std::map<std::string, Shape> shapes() const {
    static const std::map<char, std::int64_t> extents{
        {'B', 4}, {'L', 2}, {'M', 3}, {'N', 2}, {'T', 2}, {'E', 8}, {'F', 8},
        {'H', 4}, {'K', 2}, {'Q', 4}, {'V', 8}, {'P', 9}, {'J', 2}};
    std::map<std::string, Shape> all;
    for (const ValueDecl& input : program().inputs) {
      Shape& shape = all[input.name];
      for (char letter : input.layout.letters()) shape.push_back(extents.at(letter));
    }
    return all;
  }
  std::map<std::string, Type> types() const { return check(program(), shapes(), torus); }
};

inline std::vector<OpSample> op_samples() {
  using K = OpKind;
  const std::string x = "input x : BLE_yx is in\n", h = "input h : BLF_yx is gate\n";
  const std::string q = "input q : BLH_yxQ is q\n", pos = "input pos : BL is input pos\n";
  const std::string product = "input a : BLE_x is in\ninput w : E_xF_y is weight w_gate\n";
  const std::string partial =
      product + "p : BLF_y partialsum-x = einsum(BLE,EF->BLF; a, w) is gate\n";
  const std::string tables =
      "input cos : PJ is weight rope_cos\ninput sin : PJ is weight rope_sin\n";
  const std::string candidates =
      "input z : BV is logits\nv : BC, i : BC = local_argmax(z) is stat candidates, stat indices\n";
  const std::string chances = "input e : BV_yx is stat chances\n";
  return {
      {K::all_gather, x + "y : BLE_y = all_gather(x, E, x) is in\n"},
      {K::reduce_scatter, partial + "y : BLF_yx = reduce_scatter(p, F, x) is gate\n"},
      {K::all_reduce, partial + "y : BLF_y = all_reduce(p, x) is gate\n"},
      {K::all_to_all, x + "y : B_xLE_y = all_to_all(x, E->B, x) is in\n"},
      {K::permute_axes, x + "y : BLE_xy = permute_axes(x, E, yx->xy) is in\n"},
      {K::slice, "input x : BLE_y is in\ny : B_xLE_y = slice(x, B, x) is in\n"},
      {K::last, x + "y : BE_yx = last(x) is last in\n"},
      {K::split_dim, q + "y : BLS_yR_xQ = split_dim(q, H->S_yR_x) is q\n"},
      {K::merge_dim, q + "s : BLS_yR_xQ = split_dim(q, H->S_yR_x) is q\n"
                         "y : BLH_yxQ = merge_dim(s, SR->H) is q\n"},
      {K::einsum, partial},
      {K::embed_lookup,
       "input ids : BL is input ids\ninput t : V_yE_x is weight embed\n"
       "y : BLE_x partialsum-y = embed_lookup(ids, t) is raw embed\n"},
      {K::add, x + "y : BLE_yx = add(x, x) is out\n"},
      {K::scale, h + "input s : F_yx is weight b_gate\ny : BLF_yx = scale(h, s) is gate\n"},
      {K::scale_by, x + "y : BLE_yx = scale_by(x, embed_scale) is embed\n"},
      {K::divide_by, "input s : BL is stat sum\ny : BL = divide_by(s, E) is stat mu\n"},
      {K::bias, h + "input b : F_yx is weight b_gate\ny : BLF_yx = bias(h, b) is gate\n"},
      {K::center, x + "input m : BL is stat mu\ny : BLE_yx = center(x, m) is stat d\n"},
      {K::store, x + "y : BLE_yx = store(x) is in\n"},
      {K::norm, x + "input s : BL is stat ss\ninput g : E_yx is weight norm\n"
                    "y : BLE_yx = norm(x, s, g) is norm\n"},
      {K::rope, q + pos + tables + "y : BLH_yxQ = rope(q, pos, cos, sin) is q_rot\n"},
      {K::rope_interleaved,
       q + pos + tables + "y : BLH_yxQ = rope_interleaved(q, pos, cos, sin) is q_rot\n"},
      {K::swiglu, h + "y : BLF_yx = swiglu(h, h) is hidden\n"},
      {K::geglu, h + "y : BLF_yx = geglu(h, h) is hidden\n"},
      {K::gelu, h + "y : BLF_yx = gelu(h) is hidden\n"},
      {K::gelu_erf, h + "y : BLF_yx = gelu_erf(h) is hidden\n"},
      {K::append, pos + "input c : BMK_yQ is previous k_cache\ninput k : BLK_yQ is k_rot\n"
                        "y : BMK_yQ = append(c, k, pos) is k_cache\n"},
      {K::attend, q + pos +
                      "input c : BMKQ is k_cache\n"
                      "s : BLH_yxM, m : BLH_yx, e : BLH_yxM, d : BLH_yx, o : BLH_yxQ = "
                      "attend(q, c, c, pos) is score, max, exp, denom, attn\n"},
      {K::attend_prefix, q + pos +
                             "input c : BMKQ is k_cache\ninput p : NTKQ is prefix k_cache\n"
                             "s : BLH_yxM, m : BLH_yx, e : BLH_yxM, d : BLH_yx, o : BLH_yxQ = "
                             "attend_prefix(q, c, c, p, p, pos) is score, max, exp, denom, attn\n"},
      {K::with_prefix,
       "input c : B_yxMKQ is k_cache\ninput p : NTKQ is prefix k_cache\n"
       "y : B_yxMKQ = with_prefix(p, c) is joined k_cache\n"},
      {K::local_argmax,
       "input z : BV_yx is logits\nv : BC_yx, i : BC_yx = local_argmax(z) "
       "is stat candidates, stat indices\n"},
      {K::argmax, candidates + "y : B = argmax(v, i) is token\n"},
      {K::weigh, candidates + "y : BV = weigh(z, v) is stat chances\n"},
      {K::top_k, chances + "w : BW, f : B, y : BV_yx = top_k(e, yx) is stat top_k_counts, "
                           "stat top_k_floor, stat top_k_chances\n"},
      {K::top_p, chances + "w : BW, f : B, y : BV_yx = top_p(e, yx) is stat top_p_sums, "
                           "stat top_p_floor, stat top_p_chances\n"},
      {K::masses, chances + "y : BC_yxW = masses(e) is stat masses\n"},
      {K::draw, chances + "m : BC_yxW = masses(e) is stat masses\n"
                          "g : BCW = all_gather(m, C, yx) is stat masses\n"
                          "y : BC_yx, t : BC_yx = draw(e, g) is stat hits, stat drawn\n"},
      {K::map, x + "input s : BL is stat ss\n"
                   "y : BLE_yx = map(mul(x, div(1, sqrt(add(div(s, E), eps)))); E = 8 [extent], "
                   "eps = 1e-05) is norm\n"},
      {K::max, "input e : BLH_yxM is score\ny : BLH_yx = max(e, M) is max\n"},
      {K::sum, x + "y : BL partialsum-xy = sum(x, E) is stat sum\n"},
      {K::stored_sum, x + "y : BE_yx = stored_sum(x, L) is last in\n"},
      {K::mean, "input e : BLH_yxM is score\ny : BLH_yx = mean(e, M) is max\n"},
      {K::top, "input e : BLH_yxM is score\ny : BLH_yxM = top(e, M, 2) is score\n"},
      {K::turn, q + "y : BLH_yxQ = turn(q, Q, half 4) is q_rot\n"},
      {K::gather,
       "input ids : BL is input ids\ninput t : VE_x is weight embed\n"
       "y : BLE_x = gather(ids, t) is raw embed\n"},
  };
}

/// The sample of an op; none if there is none: then something lacks the op.
inline const OpSample* op_sample(OpKind kind) {
  static const std::vector<OpSample> all = op_samples();
  for (const OpSample& sample : all)
    if (sample.kind == kind) return &sample;
  return nullptr;
}

}  // namespace shardproof
