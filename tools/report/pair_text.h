#pragma once

#include <string>

#include "tools/report/pair_comparison.h"

namespace shardproof::tools {

/// Returns what `compare A B` prints. `quiet`: without rows of values that are the same or apart by
/// rounding.
std::string pair_text(const PairComparison& of, bool quiet);

/// Returns what is known of the first wrong value of A, or of B; "" if there is none.
std::string wrong_value_text(const dump::Pair& pair, bool of_b);

}  // namespace shardproof::tools
