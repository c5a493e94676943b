#pragma once

#include <optional>
#include <vector>

#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "engine/shards/per_chip.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// One block that a chip receives: the sending chip, and the index of the block's first element in
/// the sender's and in the receiver's shard.
struct Piece {
  int from_chip;
  std::int64_t from;
  std::int64_t to;
};

/// The plan of a collective or a slice: the pieces of every chip's new shard. In a plain move they
/// tile the shard; in a reduction each covers all of it and they are summed.
struct Moves {
  Shape from_local;
  Shape to_local;
  Shape block;                         ///< the extents of every piece
  PerChip<std::vector<Piece>> pieces;  ///< per destination chip, in group order

  /// Elements that chip `chip` receives from other chips.
  std::int64_t received(int chip) const;
};

/// Throws Error("transfer_c1", ...) unless `changed` is a plan between the same shard shapes as
/// `plan` and every piece lies inside both shards.
void require_executable(const Moves& changed, const Moves& plan);
/// Throws Error("transfer_c1", ...) as above, for a plan from `senders` chips to another torus.
void require_executable(const Moves& changed, const Moves& plan, int senders);

/// The plan of each collective (paper §3.1, Fig A.1). `from` and `to` are the local shapes before
/// and after; dims are indices in the layout. Groups are the chips along `axes`, in the block order
/// of the subscript.
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
/// The index of a dim that each row of the batch keeps.
struct KeptPlaces {
  std::size_t batch;                 ///< index of B in the layout
  Axes axes;                         ///< axes of B
  std::vector<std::int64_t> of_row;  ///< for every row of the global batch
};
/// No traffic: keeps only the last index of dim `dim` (unsharded), or each row's index in `kept`.
Moves last_moves(const Torus& torus, const Shape& from, std::size_t dim,
                 const std::optional<KeptPlaces>& kept = {});

}  // namespace shardproof
