#pragma once

#include <string>

#include "tools/report/pair_comparison.h"

namespace shardproof::tools {

/// Returns the drift of both traces by layer as an SVG: a mark for each, and a bar from the least
/// to the most of runs in random orders. "" if nothing is known.
std::string pair_plot(const dump::Pair& pair);

}  // namespace shardproof::tools
