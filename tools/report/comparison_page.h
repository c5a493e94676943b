#pragma once

#include <string>

#include "tools/report/comparison.h"

namespace shardproof::tools {

/// Returns the comparison as one HTML page that loads nothing else: the sentence, all values by
/// verdict, the first divergence with its chips, blocks, operands and causes, drift, what the dump
/// declares, what was not seen, and the command that repeats it.
std::string comparison_page(const Comparison& of);

}  // namespace shardproof::tools
