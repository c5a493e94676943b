#pragma once

#include "engine/layout/torus.h"

namespace shardproof::diagnosis {

/// Returns the chip with that block index over `axes` and the coordinates of `chip` on all others.
int with_block(const Torus& torus, int chip, const Axes& axes, int block);

/// Returns those of `axes` along which two chips have other coordinates.
Axes axes_between(const Torus& torus, int chip, int other, const Axes& axes);

/// Returns the axes with more than one chip, in their order.
Axes significant(const Axes& axes, const Torus& torus);

/// Returns whether the axes of `list` occur in `of` in the same order, not always adjacent.
bool is_sublist(const Axes& list, const Axes& of);

}  // namespace shardproof::diagnosis
