#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/faults/detail/edits.h"
#include "golden/faults/operator.h"

// What rows of faults of collectives share: who sends what to whom. The run keeps its layouts; the
// plan of moves is what another program, or a wrong implementation, would have.

namespace shardproof::faults {

using Kinds = std::vector<OpKind>;
inline const Kinds kReductions{OpKind::reduce_scatter, OpKind::all_reduce};
inline const Kinds kCollectives{OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce,
                                OpKind::all_to_all, OpKind::permute_axes};
inline const Kinds kInOrder{OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_to_all};

/// A row on collectives of these kinds, with those of the parameters that change the plan; null
/// `candidates`: "-". In the hand-over of caches a fault is of class M15, and has rows of its own.
Operator row_of_moves(std::string_view name, std::string_view fault_class, std::string_view what,
                      Kinds kinds, std::function<std::vector<std::string>(const Place&)> candidates,
                      MovesEdit edit, ProgramEdit written = {});

/// Keeps the pieces of a reduction for which keep(place in the group, chip) is true.
template <class Keep>
Moves keep_parts(Moves moves, Keep&& keep) {
  for (std::size_t chip = 0; chip < moves.pieces.size(); ++chip) {
    std::vector<Piece> kept;
    const std::vector<Piece> all = std::as_const(moves).pieces[chip];
    for (std::size_t j = 0; j < all.size(); ++j)
      if (keep(j, static_cast<int>(chip), all[j])) kept.push_back(all[j]);
    moves.pieces[chip] = std::move(kept);
  }
  return moves;
}

/// The index of the chip's own piece in its group.
std::size_t own_place(const MovesAt& at, int chip);

/// The collective with its blocks in another order: place j of a group of n stands for order(j, own
/// place, n). Gathers take other chips' blocks, a reduction's chips another block of the sum.
template <class Order>
std::optional<Moves> reordered(const MovesAt& at, Order&& order) {
  Moves moves = at.right;
  for (int chip = 0; chip < at.torus.chips(); ++chip) {
    const std::vector<int> group = at.group(chip);
    const auto n = group.size();
    const std::size_t mine = own_place(at, chip);
    auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
    if (reduces(at.op)) {
      const auto other = static_cast<std::size_t>(group[order(mine, mine, n) % n]);
      for (std::size_t j = 0; j < pieces.size(); ++j)
        pieces[j].from = at.right.pieces[other][j].from;
      continue;
    }
    if (pieces.size() != n) return std::nullopt;
    const std::vector<Piece>& right = at.right.pieces[static_cast<std::size_t>(chip)];
    for (std::size_t j = 0; j < n; ++j)
      pieces[j].from_chip = right[order(j, mine, n) % n].from_chip;
  }
  return moves;
}

/// The opposite order of blocks.
std::optional<Moves> blocks_reversed(const MovesAt& at, const std::string&);
/// The collective as `op` would do it, if its shards have the same shapes.
std::optional<Moves> as_other(const MovesAt& at, const Op& op);

/// A dropped collective: each chip's own block or part stands for the whole. Written, a reduction
/// that scatters becomes a slice, any other is gone.
std::optional<Moves> dropped(const MovesAt& at, const std::string&);
void write_dropped(Program& program, std::size_t i, const std::string&);

/// The axes of a group in the opposite order; "-" where it has several.
std::vector<std::string> other_orders(const Place& place);
std::optional<Moves> axes_reversed(const MovesAt& at, const std::string&);
void write_axes_reversed(Program& program, std::size_t i, const std::string&);

}  // namespace shardproof::faults
