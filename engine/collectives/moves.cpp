#include "engine/collectives/moves.h"

#include <fmt/format.h>

#include <memory>

namespace shardproof {
namespace {

/// The index of the element at `offset` in dim `dim` and 0 in the others.
std::int64_t at(const Shape& shape, std::size_t dim, std::int64_t offset) {
  for (std::size_t d = dim + 1; d < shape.size(); ++d) offset *= shape[d];
  return offset;
}

Moves empty_moves(const Torus& torus, const Shape& from, const Shape& to, const Shape& block) {
  return {from, to, block, PerChip<std::vector<Piece>>(static_cast<std::size_t>(torus.chips()))};
}

/// For moves in which all chips of a group along `axes` receive the same: sets piece j to piece(j,
/// member j of the group).
template <class MakePiece>
void for_each_group(const Torus& torus, const Axes& axes, Moves& moves, MakePiece&& piece) {
  for (int chip = 0; chip < torus.chips(); ++chip) {
    if (moves.pieces.identity(static_cast<std::size_t>(chip)) != nullptr) continue;
    const std::vector<int> group = torus.group(chip, axes);  // the same for each of its members
    auto all = std::make_shared<std::vector<Piece>>();
    all->reserve(group.size());
    for (std::size_t j = 0; j < group.size(); ++j)
      all->push_back(piece(static_cast<std::int64_t>(j), group[j]));
    for (const int member : group) moves.pieces.put(static_cast<std::size_t>(member), all);
  }
}

/// The index, from a block's first element, of its last one in a shard of `local`.
std::int64_t last_of(const Shape& block, const Shape& local) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < block.size(); ++d) index = index * local[d] + block[d] - 1;
  return index;
}

}  // namespace

std::int64_t Moves::received(int chip) const {
  std::int64_t others = 0;
  for (const Piece& piece : pieces[static_cast<std::size_t>(chip)])
    if (piece.from_chip != chip) ++others;
  return others * element_count(block);
}

void require_executable(const Moves& changed, const Moves& plan) {
  require_executable(changed, plan, static_cast<int>(plan.pieces.size()));
}

void require_executable(const Moves& changed, const Moves& plan, int senders) {
  const auto refuse = [](std::string_view why) {
    throw Error("transfer_c1", fmt::format("a changed transfer plan {}", why));
  };
  if (changed.from_local != plan.from_local || changed.to_local != plan.to_local ||
      changed.block != plan.block || changed.pieces.size() != plan.pieces.size())
    refuse("is between other shards");
  if (element_count(plan.block) == 0) return;
  const auto within = [&](std::int64_t first, const Shape& local) {
    return first >= 0 && first + last_of(plan.block, local) < element_count(local);
  };
  for (std::size_t chip = 0; chip < changed.pieces.size(); ++chip)
    for (const Piece& piece : changed.pieces[chip]) {
      if (piece.from_chip < 0 || piece.from_chip >= senders)
        refuse(fmt::format("takes a piece from chip number {}, and there are {}", piece.from_chip,
                           senders));
      if (!within(piece.from, plan.from_local) || !within(piece.to, plan.to_local))
        refuse(fmt::format("has a piece outside its shards, of chip number {} for {}",
                           piece.from_chip, chip));
    }
}

Moves all_gather_moves(const Torus& torus, const Shape& from, std::size_t dim, const Axes& axes) {
  Shape to = from;
  to[dim] *= torus.size(axes);
  Moves moves = empty_moves(torus, from, to, from);
  for_each_group(torus, axes, moves, [&](std::int64_t j, int member) {
    return Piece{member, 0, at(to, dim, j * from[dim])};
  });
  return moves;
}

Moves reduce_scatter_moves(const Torus& torus, const Shape& from, std::size_t dim,
                           const Axes& axes) {
  Shape to = from;
  to[dim] /= torus.size(axes);
  Moves moves = empty_moves(torus, from, to, to);
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const std::int64_t mine = at(from, dim, torus.block(chip, axes) * to[dim]);
    for (int member : torus.group(chip, axes))
      moves.pieces[static_cast<std::size_t>(chip)].push_back({member, mine, 0});
  }
  return moves;
}

Moves all_reduce_moves(const Torus& torus, const Shape& from, const Axes& axes) {
  Moves moves = empty_moves(torus, from, from, from);
  for_each_group(torus, axes, moves, [](std::int64_t, int member) { return Piece{member, 0, 0}; });
  return moves;
}

Moves all_to_all_moves(const Torus& torus, const Shape& from, std::size_t from_dim,
                       std::size_t to_dim, const Axes& axes, const Axes& as) {
  const int blocks = torus.size(axes);
  Shape to = from;
  to[from_dim] *= blocks;
  to[to_dim] /= blocks;
  Shape block = from;
  block[to_dim] = to[to_dim];
  Moves moves = empty_moves(torus, from, to, block);
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const std::vector<int> group = torus.group(chip, axes);
    const std::int64_t mine = torus.block(chip, as);
    for (std::size_t j = 0; j < group.size(); ++j) {
      const auto place = static_cast<std::int64_t>(j);
      moves.pieces[static_cast<std::size_t>(chip)].push_back(
          {group[j], at(from, to_dim, mine * to[to_dim]),
           at(to, from_dim, place * from[from_dim])});
    }
  }
  return moves;
}

Moves permute_axes_moves(const Torus& torus, const Shape& from, const Axes& old_axes,
                         const Axes& new_axes) {
  Moves moves = empty_moves(torus, from, from, from);
  for (int chip = 0; chip < torus.chips(); ++chip) {
    // The chip whose block in the old order is this chip's block in the new one.
    const std::vector<int> by_old_block = torus.group(chip, old_axes);
    const int source = by_old_block[static_cast<std::size_t>(torus.block(chip, new_axes))];
    moves.pieces[static_cast<std::size_t>(chip)].push_back({source, 0, 0});
  }
  return moves;
}

Moves slice_moves(const Torus& torus, const Shape& from, std::size_t dim, const Axes& axes) {
  Shape to = from;
  to[dim] /= torus.size(axes);
  Moves moves = empty_moves(torus, from, to, to);
  for (int chip = 0; chip < torus.chips(); ++chip)
    moves.pieces[static_cast<std::size_t>(chip)].push_back(
        {chip, at(from, dim, torus.block(chip, axes) * to[dim]), 0});
  return moves;
}

Moves last_moves(const Torus& torus, const Shape& from, std::size_t dim,
                 const std::optional<KeptPlaces>& kept) {
  // The dim stays, with extent 1; the caller's layout drops it.
  Shape to = from;
  to[dim] = 1;
  Shape block = to;
  if (kept) block[kept->batch] = 1;
  Moves moves = empty_moves(torus, from, to, block);
  for (int chip = 0; chip < torus.chips(); ++chip) {
    auto& pieces = moves.pieces[static_cast<std::size_t>(chip)];
    if (!kept) {
      pieces.push_back({chip, at(from, dim, from[dim] - 1), 0});
      continue;
    }
    const std::int64_t rows = from[kept->batch];
    const std::int64_t first = torus.block(chip, kept->axes) * rows;
    for (std::int64_t b = 0; b < rows; ++b)
      pieces.push_back({chip,
                        at(from, kept->batch, b) +
                            at(from, dim, kept->of_row.at(static_cast<std::size_t>(first + b))),
                        at(to, kept->batch, b)});
  }
  return moves;
}

}  // namespace shardproof
