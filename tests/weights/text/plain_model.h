#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// A text with something of every form, in which tests break one line at a time.
inline constexpr std::string_view kPlainModel = R"(model plain
dim E d_model
dim H heads
dim K key heads
dim G = H // K
dim Q channels
dim V vocabulary
dim P positions
dim X experts
dim A = E
flag local
number eps
number scale = Q ** -0.5
number near = 1 - 3
small E=8, H=4, K=2, P=32, Q=4, V=12, X=3, eps=1e-6, layers=2, local=10

embedding
weight table : VE
weight places : PE
embed : BLE = store(add(gather(table, ids, V), gather(places, pos, P)))
far : BLM = sub(slot, pos)
see : BLM = within(far, -inf, 0)
see_near : BLM = within(far, near, 0)

layer
weight g : E
weight wq : EHQ
weight wk : EKQ
weight wo : HQE
weight w_router : EX
weight we : XEA
weight extra : E if local
norm : BLE = store(mul(div(in, sqrt(add(mean(mul(in, in), E), eps))), g))
q : BLHQ = store(einsum(BLE,EHQ->BLHQ; norm, wq))
k : BLKQ = store(einsum(BLE,EKQ->BLKQ; norm, wk))
k_cache : BMKQ = append(k, pos)
dot : BLKGM where see_near = einsum(BLKGQ,BMKQ->BLKGM; split_dim(q, H->KG), k_cache) if local
dot : BLKGM where see = einsum(BLKGQ,BMKQ->BLKGM; split_dim(q, H->KG), k_cache) unless local
exp : BLKGM = exp(sub(mul(dot, scale), max(dot, M)))
share : BLKGM = div(exp, sum(exp, M))
attn : BLHQ = store(merge_dim(einsum(BLKGM,BMKQ->BLKGQ; share, k_cache), KG->H))
chosen : BLX = top(einsum(BLE,EX->BLX; norm, w_router), X, 2)
expert : BLXA where chosen = store(einsum(BLE,XEA->BLXA; norm, we))
faded : BLE = add(mul(before(state, g), 0.5), in)
state : BLE = clamp(faded, -8, 8)
mixed : BLE = add(einsum(BLHQ,HQE->BLE; attn, wo), split_dim(sum(expert, X, stored), A->E))
more : BLE = mul(in, extra) if local
more : BLE = in unless local
out : BLE = store(add(add(mixed, state), more))

head
final : BLE = turn(in, E, half 4)
logits : BLV = einsum(BLE,VE->BLV; final, table)
)";

/// The text with one line in place of another, which must be there once.
inline std::string with_line(std::string_view old_line, std::string_view new_line) {
  std::string text(kPlainModel);
  const std::string line = std::string(old_line) + "\n";
  const auto at = text.find("\n" + line);
  if (at == std::string::npos || text.find("\n" + line, at + 1) != std::string::npos)
    throw std::logic_error("no line, or several: " + line);
  return text.replace(at + 1, line.size(), std::string(new_line) + "\n");
}

inline std::string file_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

inline std::string refusal_of(const std::string& text) {
  try {
    parse_model_text(text, "m.model");
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace shardproof
