#include "engine/moves.h"

namespace shardproof {
namespace {

/// The index of the element at `offset` of dim `dim` and 0 of the others.
std::int64_t at(const Shape& shape, std::size_t dim, std::int64_t offset) {
  for (std::size_t d = dim + 1; d < shape.size(); ++d) offset *= shape[d];
  return offset;
}

Moves empty_moves(const Torus& torus, const Shape& from, const Shape& to, const Shape& block) {
  return {from, to, block,
          std::vector<std::vector<Piece>>(static_cast<std::size_t>(torus.chips()))};
}

}  // namespace

std::int64_t Moves::received(int chip) const {
  std::int64_t others = 0;
  for (const Piece& piece : pieces[static_cast<std::size_t>(chip)])
    if (piece.from_chip != chip) ++others;
  return others * element_count(block);
}

Moves all_gather_moves(const Torus& torus, const Shape& from, std::size_t dim, const Axes& axes,
                       bool removed) {
  Shape to = from;
  to[dim] *= torus.size(axes);
  Moves moves = empty_moves(torus, from, to, from);
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const std::vector<int> group = torus.group(chip, axes);
    for (std::size_t j = 0; j < group.size(); ++j)
      moves.pieces[static_cast<std::size_t>(chip)].push_back(
          {removed ? chip : group[j], 0, at(to, dim, static_cast<std::int64_t>(j) * from[dim])});
  }
  return moves;
}

Moves reduce_scatter_moves(const Torus& torus, const Shape& from, std::size_t dim, const Axes& axes,
                           bool removed) {
  Shape to = from;
  to[dim] /= torus.size(axes);
  Moves moves = empty_moves(torus, from, to, to);
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const std::int64_t mine = at(from, dim, torus.block(chip, axes) * to[dim]);
    const std::vector<int> group = removed ? std::vector<int>{chip} : torus.group(chip, axes);
    for (int member : group)
      moves.pieces[static_cast<std::size_t>(chip)].push_back({member, mine, 0});
  }
  return moves;
}

Moves all_reduce_moves(const Torus& torus, const Shape& from, const Axes& axes, bool removed) {
  Moves moves = empty_moves(torus, from, from, from);
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const std::vector<int> group = removed ? std::vector<int>{chip} : torus.group(chip, axes);
    for (int member : group) moves.pieces[static_cast<std::size_t>(chip)].push_back({member, 0, 0});
  }
  return moves;
}

Moves all_to_all_moves(const Torus& torus, const Shape& from, std::size_t from_dim,
                       std::size_t to_dim, const Axes& axes, const Axes& as, bool removed) {
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
          {removed ? chip : group[j], at(from, to_dim, (removed ? place : mine) * to[to_dim]),
           at(to, from_dim, place * from[from_dim])});
    }
  }
  return moves;
}

Moves permute_axes_moves(const Torus& torus, const Shape& from, const Axes& old_axes,
                         const Axes& new_axes, bool removed) {
  Moves moves = empty_moves(torus, from, from, from);
  for (int chip = 0; chip < torus.chips(); ++chip) {
    // The chip whose block by the old order is this chip's block by the new one.
    const std::vector<int> by_old_block = torus.group(chip, old_axes);
    const int source = by_old_block[static_cast<std::size_t>(torus.block(chip, new_axes))];
    moves.pieces[static_cast<std::size_t>(chip)].push_back({removed ? chip : source, 0, 0});
  }
  return moves;
}

Moves slice_moves(const Torus& torus, const Shape& from, std::size_t dim, const Axes& axes) {
  return reduce_scatter_moves(torus, from, dim, axes, /*removed=*/true);
}

Moves last_moves(const Torus& torus, const Shape& from, std::size_t dim) {
  // The row keeps its dim, with extent 1; the caller's layout drops it.
  Shape row = from;
  row[dim] = 1;
  Moves moves = empty_moves(torus, from, row, row);
  for (int chip = 0; chip < torus.chips(); ++chip)
    moves.pieces[static_cast<std::size_t>(chip)].push_back({chip, at(from, dim, from[dim] - 1), 0});
  return moves;
}

}  // namespace shardproof
