#pragma once

#include <string>

#include "tools/report/pair_comparison.h"

namespace shardproof::tools {

/// Returns the result of `compare A B` as one HTML page that loads nothing else.
std::string pair_page(const PairComparison& of);

}  // namespace shardproof::tools
