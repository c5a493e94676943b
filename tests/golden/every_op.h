#pragma once

#include <string>
#include <vector>

#include "engine/run/plan.h"

namespace shardproof {

/// The case with a layer of ws2d:heads that views a dim as two: no strategy does, a user's layer
/// may.
inline Case with_views(Case c) {
  Program layer = partitioned(c, Strategy::parse("ws2d:heads"), Phase::prefill).layer;
  const Program views = parse_program("views", R"(
    split : BLS_zR_yxQ = split_dim(o, H->S_zR_yx) is attn
    merged : BLH_zyxQ = merge_dim(split, SR->H) is attn
  )");
  layer.ops.insert(layer.ops.end(), views.ops.begin(), views.ops.end());
  c.prefill = c.decode = Strategy(layer);
  return c;
}

/// The case with a layer of ws2d:heads that computes values of its own again, by steps of model
/// texts. Others have no value of the model by themselves.
inline Case with_text_steps(Case c) {
  Program layer = partitioned(c, Strategy::parse("ws2d:heads"), Phase::prefill).layer;
  const Program steps = parse_program("steps", R"(
    again : BLE_xzy = map(add(x, yr)) is out
    most : BLH_zyx = max(s where e, M) is max
    total : BLH_zyx = sum(e, M) is denom
  )");
  layer.ops.insert(layer.ops.end(), steps.ops.begin(), steps.ops.end());
  c.prefill = c.decode = Strategy(layer);
  return c;
}

/// Cases that have every op between them, but for those that no value of a model of keys has, on
/// 3x1x2; with these keys, too.
inline std::vector<Case> cases_of_every_op(const std::string& keys = "") {
  std::vector<Case> all;
  for (const char* line :
       {"prefill=wg-xyz:batch decode=ws2d:batch",
        "prefill=ws2d:pre-zy decode=ws2d:heads model=palm-tiny,ffn=geglu,norm=layernorm,bias=all,"
        "rope=interleaved,tied=false,embed_scale=0.5,logit_scale=2 block=serial act=bf16",
        "prefill=sp:1d decode=ws1d:heads model=palm-tiny,ffn=gelu",
        "prefill=wg-xy:batch decode=ws2d:batch model=palm-tiny,bias=all weights=int8",
        "prefill=wg-x:natural decode=ws2d:batch model=palm-tiny,ffn=gelu-erf",
        "prefill=ws2d:heads temperature=0.3 top_k=20 top_p=0.9",
        "prefill=ws2d:heads decode=ws2d:batch prefix=2:3"}) {
    Case c = parse_case(std::string("torus=3x1x2 batch=6 prompt=6 gen=2 seed=3 ") + line + keys);
    c.model.layers = 1;
    c.model.E = c.model.F = c.model.V = 36;
    c.model.H = 6;
    c.model.K = 3;
    c.model.Q = 4;
    all.push_back(c);
  }
  all.push_back(with_views(all[0]));
  all.push_back(with_text_steps(all[0]));
  return all;
}

}  // namespace shardproof
