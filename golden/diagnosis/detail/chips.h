#pragma once

#include "engine/layout/torus.h"

namespace shardproof::diagnosis {

/// The chip with that block index over `axes`, else where `chip` is.
int with_block(const Torus& torus, int chip, const Axes& axes, int block);

/// The axes with more than one chip, in their order.
Axes significant(const Axes& axes, const Torus& torus);

/// Whether a list's axes stand in another's in the same order, perhaps with others between them.
bool is_sublist(const Axes& list, const Axes& of);

}  // namespace shardproof::diagnosis
