#pragma once

// The steps of model texts that are drawn on chips.
#include <string>
#include <vector>

#include "tests/golden/scalar/drawn_step.h"

namespace shardproof {

/// One step of each kind.
inline const std::vector<StepForm>& step_forms() {
  static const std::vector<StepForm> all{
      {"map(add(mul(a, b), sub(c, 0.5)))", {"BLE", "E", "BL"}},
      {"map(mul(b, a))", {"EB", "BLE"}},
      {"map(sub(slot, pos))", {"int M", "int BL"}},
      {"map(sub(slot, pos) as BLM)", {"int M", "int BL"}},
      {"map(a as EBL where w)", {"BLE", "where BE"}},
      {"map(within(sub(slot, pos), -inf, 0))", {"int M", "int BL"}},
      {"map(a where w)", {"BLE", "where BE"}},
      {"map(mul(a, div(1, sqrt(add(div(abs(s), E), eps)))) where w; E = 96 [extent], eps = 1e-05)",
       {"BLe", "BL", "where L"}},
      {"map(store(add(silu(a), store(mul(b, 3)))))", {"KG", "K"}},
      {"map(larger(clamp(a, -7, TOP), gelu_tanh(b)); TOP = 2.5)", {"BLE", "LE"}},
      {"map(exp(less); less = sub(a, b))", {"BL", "BL", "B"}},
      {"max(x, EF)", {"BELF"}},
      {"max(x, B)", {"BEL"}, "B"},
      {"max(x where w, E)", {"BLE", "where BE"}},
      {"max(x where w and u, EL)", {"BLE", "where BE", "where EL"}},
      {"stored_sum(x, EF)", {"BELF"}, "EF"},
      {"stored_sum(x where w, B)", {"BEL", "where EB"}, "B"},
      {"mean(x, E)", {"BEL"}, "E"},
      {"mean(x where w, FB)", {"BELF", "where LF"}, "FB"},
      {"top(x, E, 1)", {"BEL"}, "E"},
      {"top(x where w, E, 1)", {"BLE", "where BE"}, "E"},
      {"top(x where w and u, E, 1)", {"ELB", "where BE", "where E"}, "E"},
      {"map(exp(a) where w and u)", {"BLE", "where BE", "where LE"}},
      {"sum(x, EF)", {"BELF"}},
      {"sum(x, L)", {"BLE"}},
      {"turn(x, Q, half 4)", {"BQH"}, "Q"},
      {"turn(x, Q, interleaved 2)", {"BHQ"}, "Q"},
      {"turn(x where w, Q, half 4)", {"BQH", "where BQ"}, "Q"},
      {"turn(x where w and u, Q, interleaved 4)", {"BHQ", "where H", "where BH"}, "Q"},
      {"gather(i, t)", {"int BL", "PKQ"}, "P"},
      {"append(c, t, pos zeros)", {"BMKQ", "BLKQ", "int BL"}, "LM"},
      {"append(c, t, pos)", {"KMB", "KLB", "int BL"}, "LM"},
      {"einsum(BLKGQ,BMKQ->BLKGM; q, k)", {"BLKGQ", "BMKQ"}},
      {"einsum(BLKGM,BMKQ->BLKGQ; e, v)", {"BLKGM", "BMKQ"}},
      {"einsum(BLE,EF->FBL; x, w)", {"BLE", "EF"}},
      {"einsum(aBE,BEa->Ba; x, y)", {"aBE", "BEa"}},
      {"einsum(BE,EF->FB + BG,GF->FB; a, w; g, u)", {"BE", "EF", "BG", "GF"}, "EG"},
      {"einsum(KBE,BEF->FKB; x, w where m)", {"KBE", "BEF", "where KF"}},
      {"einsum(BE,EF->BF + BG,GF->BF; a, w; g, u where m)",
       {"BE", "EF", "BG", "GF", "where F"},
       "EG"},
      {"einsum(BE,EF->BF + BFG,BG->BF; a, w; g, u)", {"BE", "EF", "BFG", "BG"}, "EG"},
      {"einsum(LHQ,MHQ->LHM + LHJ,MJ->LHM; q, k; p, c where m)",
       {"LHQ", "MHQ", "LHJ", "MJ", "where LM"},
       "QJ"},
      {"einsum(BE,EF->FB; a, w where m and u)", {"BE", "EF", "where FB", "where B"}},
  };
  return all;
}

inline SharedValue put_floats(const WholeOperand& operand, const Layout& layout,
                              const Torus& torus) {
  if (operand.integer) {
    IntTensor t(operand.shape);
    t.data = {operand.integers.begin(), operand.integers.end()};
    return shared(shard(t, layout, torus));
  }
  return shared(shard(tensor_of(operand.shape, operand.numbers), layout, torus));
}

}  // namespace shardproof
