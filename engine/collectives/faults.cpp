#include "engine/collectives/faults.h"

#include <algorithm>
#include <utility>

namespace shardproof {

Moves without_transfer(Moves plan) {
  const PerChip<std::vector<Piece>> pieces = std::move(plan.pieces);
  plan.pieces = PerChip<std::vector<Piece>>(pieces.size());
  for (std::size_t chip = 0; chip < pieces.size(); ++chip) {
    const int self = static_cast<int>(chip);
    std::vector<Piece>& own = plan.pieces[chip];
    if (plan.block == plan.to_local) {
      // Each piece covers the whole new shard: one addend of the sum remains.
      if (!pieces[chip].empty()) own = {pieces[chip].front()};
    } else {
      // The blocks that the chip would have sent, in its own order, replace those it would receive.
      own = pieces[chip];
      std::vector<std::int64_t> sent;
      for (const Piece& piece : own) {
        const auto& there = pieces[static_cast<std::size_t>(piece.from_chip)];
        sent.push_back(there.empty() ? piece.from : there.front().from);
      }
      std::sort(sent.begin(), sent.end());
      for (std::size_t i = 0; i < own.size(); ++i) own[i].from = sent[i];
    }
    for (Piece& piece : own) piece.from_chip = self;
  }
  return plan;
}

}  // namespace shardproof
