#pragma once

#include "engine/layout/torus.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// Returns the golden of the notation on a torus (level 0): each chip's block, in every layout
/// without partial sums, of a tensor BLE whose elements are their row-major indices. Throws what
/// expected_layouts throws.
dump::Dump layouts_golden(const Torus& torus);

/// Recomputes a golden of this kind from its torus and the names of its values. The blocks are the
/// judge's; throws NotEqual, naming layout and chip, if the engine cuts otherwise. Throws Error:
/// "golden_torus" (the attribute torus is missing), "golden_layout" (a value whose name is not a
/// layout without partial sums), and what Torus::parse and Layout::parse throw.
dump::Dump expected_layouts(const dump::Dump& golden);

/// Returns the attribute torus of a golden without a case. Throws Error("golden_torus", ...) if it
/// is missing, and what Torus::parse throws.
Torus torus_of(const dump::Dump& golden);

}  // namespace shardproof::corpus
