#pragma once

#include <string>

#include "tools/report/comparison.h"

namespace shardproof::tools {

/// Prints the comparison in at most 80 columns. `quiet` omits the rows of correct values.
std::string comparison_text(const Comparison& of, bool quiet);

/// Prints the first divergence and its causes, which the comparison has.
std::string divergence_text(const Comparison& of);

}  // namespace shardproof::tools
