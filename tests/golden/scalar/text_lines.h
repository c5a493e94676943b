#pragma once

// Lines of a model's text beside the steps of a program that compute them.
#include <string>
#include <vector>

#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof {

struct LineAndStep {
  std::string line;  ///< "mu : BL = div(sx, E)"
  std::string call;  ///< "map(div(sx, E); E = 8 [extent])"
};

/// B, L and M beside E=8, H=4 heads in K=2 groups of G=2, Q=4, V=7, P=9; the lines of `layer`.
inline const std::vector<LineAndStep>& layer_lines() {
  static const std::vector<LineAndStep> all{
      {"sx : BL = sum(in, E)", "sum(in, E)"},
      {"mu : BL = div(sx, E)", "map(div(sx, E); E = 8 [extent])"},
      {"d : BLE = sub(in, mu)", "map(sub(in, mu))"},
      {"ss : BL = einsum(BLE,BLE->BL; d, d)", "einsum(BLE,BLE->BL; d, d)"},
      {"norm : BLE = store(add(mul(mul(d, div(1, sqrt(add(div(ss, E), eps)))), g), b))",
       "map(store(add(mul(mul(d, div(1, sqrt(add(div(ss, E), eps)))), g), b)); E = 8 [extent], eps "
       "= "
       "1e-05)"},
      {"q : BLHQ = einsum(BLE,EHQ->BLHQ; norm, wq)", "einsum(BLE,EHQ->BLHQ; norm, wq)"},
      {"raw_k : BLKQ = einsum(BLE,EKQ->BLKQ; norm, wk)", "einsum(BLE,EKQ->BLKQ; norm, wk)"},
      {"k : BLKQ = store(raw_k)", "map(store(raw_k))"},
      {"far_q : LHQB = einsum(EHQ,BLE->LHQB; wq, norm)", "einsum(EHQ,BLE->LHQB; wq, norm)"},
      {"qt : BLHQ = turn(q, Q, half 4)", "turn(q, Q, half 4)"},
      {"qi : BLHQ = turn(q, Q, interleaved 4)", "turn(q, Q, interleaved 4)"},
      {"rot : BLHQ = store(add(mul(q, cos), mul(qt, cos)))",
       "map(store(add(mul(q, cos), mul(qt, cos))))"},
      {"kc : BMKQ = append(k, pos)", "append(kc_old, k, pos zeros)"},
      {"flat : BMQ = max(kc, K)", "max(kc, K)"},
      {"qsum : BHQ = sum(rot, L)", "sum(rot, L)"},
      {"wide : BMHQ = mul(flat, qsum)", "map(mul(flat, qsum) as BMHQ)"},
      {"qs : BLKGQ = split_dim(rot, H->KG)", "split_dim(rot, H->KG, 2)"},
      {"raw_score : BLKGM where see = einsum(BLKGQ,BMKQ->BLKGM; qs, kc)",
       "einsum(BLKGQ,BMKQ->BLKGM; qs, kc where see)"},
      {"rs : BLHM = merge_dim(raw_score, KG->H)", "merge_dim(raw_score, KG->H)"},
      {"score : BLHM = mul(rs, scale)", "map(mul(rs, scale) where see; scale = 0.5 [Q=4])"},
      {"max : BLH = max(score, M)", "max(score where see, M)"},
      {"close : BLHM where near = mul(score, 2)", "map(mul(score, 2) where near and see)"},
      {"max2 : BLH = max(close, M)", "max(close where near and see, M)"},
      {"mean2 : BLH = mean(close, M)", "mean(close where near and see, M)"},
      {"mean3 : BE = mean(norm, L)", "mean(norm, L)"},
      {"mean4 : HM = mean(score, BL)", "mean(score where see, BL)"},
      {"added : BLH = sum(close, M, stored)", "stored_sum(close where near and see, M)"},
      {"added2 : BLQ = sum(q, H, stored)", "stored_sum(q, H)"},
      {"both : BLE where first = einsum(BLHQ,EHQ->BLE + BLKQ,EKQ->BLE; rot, wq; k, wk)",
       "einsum(BLHQ,EHQ->BLE + BLKQ,EKQ->BLE; rot, wq; k, wk where first)"},
      {"raw_place : BLHM where see = einsum(BLHQ,BMHQ->BLHM + BLHQ,BMQ->BLHM; rot, wide; q, flat)",
       "einsum(BLHQ,BMHQ->BLHM + BLHQ,BMQ->BLHM; rot, wide; q, flat where see)"},
      {"less : BLHM = sub(score, max)", "map(sub(score, max) where see)"},
      {"exp : BLHM = exp(less)", "map(exp(less) where see; less = sub(score, max))"},
      {"pow : BLHM = exp2(sub(score, max))", "map(exp2(sub(score, max)) where see)"},
      {"denom : BLH = sum(exp, M)", "sum(exp, M)"},
      {"es : BLKGM = split_dim(exp, H->KG)", "split_dim(exp, H->KG, 2)"},
      {"raw_attn : BLKGQ = einsum(BLKGM,BMKQ->BLKGQ; es, kc)", "einsum(BLKGM,BMKQ->BLKGQ; es, kc)"},
      {"ra : BLHQ = merge_dim(raw_attn, KG->H)", "merge_dim(raw_attn, KG->H)"},
      {"attn : BLHQ = store(div(ra, denom))", "map(store(div(ra, denom)))"},
      {"ramp : EM = einsum(E,M->EM; g, slot)", "map(add(mul(g, slot), 0))"},
      {"two_terms : BLE = einsum(BLHQ,EHQ->BLE + BLKQ,EKQ->BLE; attn, wq; k, wk)",
       "einsum(BLHQ,EHQ->BLE + BLKQ,EKQ->BLE; attn, wq; k, wk)"},
      {"act : BLE = silu(norm)", "map(silu(norm))"},
      {"act2 : BLE = silu(mul(norm, 2))", "map(silu(mul(norm, 2)))"},
      {"gelu1 : BLE = gelu(norm)", "map(gelu(norm))"},
      {"gelu2 : BLE = gelu_tanh(norm)", "map(gelu_tanh(norm))"},
      {"gates : BLE = add(sigmoid(norm), tanh(norm))", "map(add(sigmoid(norm), tanh(norm)))"},
      {"logs : BLE = log(add(exp(norm), abs(d)))", "map(log(add(exp(norm), abs(d))))"},
      {"whole : BLE = sub(floor(norm), round(relu(norm)))",
       "map(sub(floor(norm), round(relu(norm))))"},
      {"shorter : BLE = bf16(mul(norm, 0.3))", "map(bf16(mul(norm, 0.3)))"},
      {"twice : BLE = mul(norm, two)", "map(mul(norm, two); two = 2)"},
      {"bigger : BLE = larger(norm, d)", "map(larger(norm, d))"},
      {"near_0 : BLE = within(norm, -0.5, half)",
       "map(within(norm, -0.5, half); half = 0.5 [Q=4])"},
      {"cut : BLE = clamp(norm, -0.5, half)", "map(clamp(norm, -0.5, half); half = 0.5 [Q=4])"},
      {"rest : BL = div(exp(mu), div(ss, sx))", "map(div(exp(mu), div(ss, sx)))"},
      {"out : BLE = add(in, act)", "map(add(in, act))"}};
  return all;
}

/// Those of `embedding`.
inline const std::vector<LineAndStep>& embedding_lines() {
  static const std::vector<LineAndStep> all{
      {"embed : BLE = gather(table, ids, V)", "gather(ids, table)"},
      {"far : BLM = sub(slot, pos)", "map(sub(slot, pos) as BLM)"},
      {"see : BLM = within(far, -inf, 0)", "map(within(far, -inf, 0))"},
      {"near : BLM = within(far, -1, 0)", "map(within(far, -1, 0))"},
      {"first : BL = within(pos, 1, 3)", "map(within(pos, 1, 3))"},
      {"far2 : BLM = mul(sub(pos, slot), far)", "map(mul(sub(pos, slot), far))"},
      {"cos : BLQ = gather(rope_cos, pos, P)", "gather(pos, rope_cos)"}};
  return all;
}

/// More lines of `layer`, for numbers that have an order.
inline const std::vector<LineAndStep>& ordered_lines() {
  static const std::vector<LineAndStep> all{
      {"most : BLE = top(norm, E, 3)", "top(norm, E, 3)"},
      {"equals : BLE = top(near_0, E, 4)", "top(near_0, E, 4)"},
      {"seen : BLHM = top(close, H, 2)", "top(close where near and see, H, 2)"},
      {"picked : BLE where most = norm", "map(norm where most)"},
      {"mean5 : BL = mean(picked, E)", "mean(picked where most, E)"},
      {"top2 : BLE where first = top(picked, E, 1)", "map(top2_1 where first)"}};
  return all;
}

/// The text with these lines, with those that need an order if it is `ordered`.
inline ModelText text_of_lines(bool ordered) {
  std::string text =
      "model lines\ndim E one\ndim H two\ndim K three\ndim G = H // K\ndim Q four\ndim V five\n"
      "dim P six\nnumber eps\nnumber two\nnumber scale = Q ** -0.5\nnumber half = 2 / Q\n"
      "small E=8, H=4, K=2, Q=4, V=7, P=9, eps=1e-05, two=2\n\nembedding\nweight table : VE is "
      "table\nweight rope_cos : PQ is table\n";
  for (const LineAndStep& one : embedding_lines()) text += one.line + "\n";
  text += "layer\nweight g : E\nweight b : E\nweight wq : EHQ\nweight wk : EKQ\n";
  for (const LineAndStep& one : layer_lines()) text += one.line + "\n";
  if (ordered)
    for (const LineAndStep& one : ordered_lines()) text += one.line + "\n";
  return parse_model_text(text + "head\nlogits : BLV = einsum(BLE,VE->BLV; in, table)\n");
}

}  // namespace shardproof
