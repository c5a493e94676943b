#pragma once

#include <array>

#include "engine/layout.h"

namespace shardproof {

/// The judge's own reading of the notation, a few lines that share nothing with the engine's: a
/// layout bug that the accused and the judge have in common would acquit.

/// The coordinates (x, y, z) of a chip by its number, (x·Y + y)·Z + z.
std::array<int, 3> judged_coordinates(const Torus& torus, int chip);

/// Where a chip's block of each dim of a global `shape` begins: in `F_zyx` chip (x,y,z) holds block
/// (z·Y+y)·X+x.
Shape judged_offset(const Layout& layout, const Shape& shape, const Torus& torus, int chip);

/// The shape of one chip's block.
Shape judged_block(const Layout& layout, const Shape& shape, const Torus& torus);

}  // namespace shardproof
