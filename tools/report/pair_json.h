#pragma once

#include <string>

#include "tools/report/pair_comparison.h"

namespace shardproof::tools {

/// Returns the JSON of `compare A B` (docs/json.md).
std::string pair_json(const PairComparison& of);

}  // namespace shardproof::tools
