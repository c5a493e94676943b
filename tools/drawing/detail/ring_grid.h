#pragma once

#include "tools/drawing/detail/scene.h"
#include "tools/drawing/svg.h"

namespace shardproof {

/// Draws the position of each chunk at each step of a looped all_gather or reduce_scatter: its
/// order in words, then for the example chip's ring a row per round, a column per chip, and in each
/// cell the chunks that the chip uses or adds to: "3", "2 5" if they travel both ways, "3a 1b" if
/// they are halves. Outlined: the example chip. Shaded: its own chunk. For a ring that is too large
/// only the example chip is drawn, its rounds across. Drawn below `y`; returns the bottom.
double ring_grid(const Scene& scene, Svg& svg, const Op& op, double y);

}  // namespace shardproof
