#pragma once

#include <optional>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "engine/shards/per_chip.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// One block that a chip receives: from which chip, and the index of the block's first element in
/// the shard there and here.
struct Piece {
  int from_chip;
  std::int64_t from;
  std::int64_t to;
};

/// What every chip receives in a collective or a slice: the pieces of its new shard. In a plain
/// move they tile the shard; in a reduction each covers all of it and they are summed.
struct Moves {
  Shape from_local;
  Shape to_local;
  Shape block;                         ///< the extents of every piece
  PerChip<std::vector<Piece>> pieces;  ///< per destination chip, in group order

  /// Elements that chip `chip` receives from other chips.
  std::int64_t received(int chip) const;
};

/// Throws Error("transfer_c1", ...) unless `changed` is a plan between the same shards as `plan`,
/// every piece of which is inside the shard there and here.
void require_executable(const Moves& changed, const Moves& plan);
/// The same of what the chips of a torus with `senders` chips send to those of another.
void require_executable(const Moves& changed, const Moves& plan, int senders);

/// How each collective routes blocks (paper §3.1, Fig A.1). `from` and `to` are the local shapes
/// before and after; dims are places in the layout. Groups are the chips along `axes`, in the block
/// order of the subscript.
Moves all_gather_moves(const Torus& torus, const Shape& from, std::size_t dim, const Axes& axes);
Moves reduce_scatter_moves(const Torus& torus, const Shape& from, std::size_t dim,
                           const Axes& axes);
Moves all_reduce_moves(const Torus& torus, const Shape& from, const Axes& axes);
/// Takes `axes` from dim `from_dim` and appends them, in the order `as`, to `to_dim`.
Moves all_to_all_moves(const Torus& torus, const Shape& from, std::size_t from_dim,
                       std::size_t to_dim, const Axes& axes, const Axes& as);
Moves permute_axes_moves(const Torus& torus, const Shape& from, const Axes& old_axes,
                         const Axes& new_axes);
/// No traffic: each chip keeps its own block.
Moves slice_moves(const Torus& torus, const Shape& from, std::size_t dim, const Axes& axes);
/// Which place of a dim each row of the batch keeps.
struct KeptPlaces {
  std::size_t batch;                 ///< B's place in the layout
  Axes axes;                         ///< of B
  std::vector<std::int64_t> of_row;  ///< of every row of the whole batch
};
/// No traffic: of dim `dim` (unsharded) only the last place is kept, or each row's own.
Moves last_moves(const Torus& torus, const Shape& from, std::size_t dim,
                 const std::optional<KeptPlaces>& kept = {});

}  // namespace shardproof
