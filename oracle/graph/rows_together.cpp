#include "oracle/graph/detail/rows_together.h"

namespace shardproof::oracle::graph {

SlotsByPass slots_of(const Passes& passes) {
  SlotsByPass slots;
  for (std::int64_t i = 0; i < passes.size(); ++i) {
    const PassPlan pass = passes.at(i);
    slots[pass.name] = pass.prefix.length + pass.cached + pass.L;
  }
  return slots;
}

Tokens tokens_alone(const PassPlan& of_row, const IntTensor& ids, const SlotsByPass& batch) {
  Tokens tokens = tokens_of(of_row, ids);
  tokens.slots = batch.at(of_row.name);
  return tokens;
}

}  // namespace shardproof::oracle::graph
