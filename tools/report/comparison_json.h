#pragma once

#include <string>

#include "tools/report/comparison.h"

namespace shardproof::tools {

/// Prints the comparison as JSON (docs/json.md).
std::string comparison_json(const Comparison& of);

}  // namespace shardproof::tools
