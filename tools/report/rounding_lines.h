#pragma once

#include <string>
#include <vector>

#include "golden/trace/verdict/verdict.h"

namespace shardproof::tools {

/// Reports the way of rounding that each kind of value shows, one line per kind and way: "norm (8
/// values): x·r is rounded; every other way misses at least 529 of 2688". Empty if no kind has more
/// than one way.
std::vector<std::string> rounding_lines(const dump::Verdict& verdict);

}  // namespace shardproof::tools
