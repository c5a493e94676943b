#pragma once

#include "tools/drawing/detail/scene.h"
#include "tools/drawing/svg.h"

namespace shardproof {

/// Which chunk is where at which step of a looped all_gather or reduce_scatter: its order in words,
/// then, of the example chip's ring, a row for each round, a column for each chip, and in each cell
/// the chunks that the chip uses or adds to: "3", "2 5" if they go both ways round, "3a 1b" if they
/// are halves. Outlined: the example chip. Shaded: the chunk that is its own. Of a ring that is too
/// large only the example chip is drawn, its rounds across. Written below `y`; returns the bottom.
double ring_grid(const Scene& scene, Svg& svg, const Op& op, double y);

}  // namespace shardproof
