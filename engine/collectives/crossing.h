#pragma once

#include <cstdint>

#include "engine/collectives/moves.h"
#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof {

/// The plan that moves a tensor of this global shape from the chips of one torus, in the layout
/// `from`, to those of another, in the layout `to` (docs/split.md): what every chip of `target`
/// pulls, and from which chip of `source`. The pieces of a chip tile its new shard. All elements in
/// one block of `from` are pulled from one of the chips that hold the block; the chips that pull
/// from a block take its holders in turn, so that replicas share the work.
///
/// A dim with a blocks on the source and b on the target moves in lcm(a, b) equal lengths.
///
/// Throws Error("crossing_c1", ...) unless both layouts have the same letters in the same order and
/// no partial sums, and what local_shape throws where a dim does not divide on either side.
Moves crossing_moves(const Torus& source, const Layout& from, const Torus& target, const Layout& to,
                     const Shape& shape);

/// Elements pulled over all chips of the target: each counts once per chip whose shard has it.
std::int64_t pulled(const Moves& crossing);

/// Elements that the chip `chip` of the source sends.
std::int64_t sent(const Moves& crossing, int chip);

}  // namespace shardproof
