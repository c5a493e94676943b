#pragma once

#include "engine/layouts/partition.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// Turns a layer's arrows into looped collective einsums (paper §3.5): arrows with a note `[loop
/// ...]` as the note says; the others, where possible, as `loop` says. An arrow that ends in an
/// all_gather is looped with all contractions that take its result; keys and values take the
/// collected buffer instead, unless it is their weight that is gathered. An arrow that begins with
/// a reduce_scatter is looped with the contraction before it.
///
/// Throws Error("layouts_c10", ...) for a note on an arrow that cannot be looped.
void fuse_loops(PartitionedLayer& made, const LayoutTable& table, Loop loop);

}  // namespace shardproof
