#pragma once

#include "engine/layout/torus.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::corpus {

/// The golden of the notation on a torus (level 0): of a tensor BLE whose elements are their own
/// row-major numbers, what each chip holds in every layout without partial sums. Throws as below.
dump::Dump layouts_golden(const Torus& torus);

/// What a golden of this kind should hold, by its own torus and names of values. The blocks are the
/// judge's; where the engine cuts otherwise it throws NotEqual, naming layout and chip. Throws
/// Error: "golden_torus" (the attribute torus is missing), "golden_layout" (a value that is not
/// called as a layout without partial sums), and what Torus::parse and Layout::parse throw.
dump::Dump expected_layouts(const dump::Dump& golden);

/// The attribute torus of a golden that has no case. Throws as above.
Torus torus_of(const dump::Dump& golden);

}  // namespace shardproof::corpus
