#pragma once

#include <string>
#include <vector>

#include "tools/report/comparison.h"

namespace shardproof::tools {

/// Returns the ranks that hold wrong numbers of the first divergence, in launcher order; empty if
/// there is none, or the dump has the value whole.
std::vector<int> wrong_ranks(const Comparison& of);

/// Writes numbers in words: "ranks 0-3, 6", "rank 2", "" for none.
std::string ranks_text(const std::vector<int>& ranks);

/// Says the result in one line: rank, value and cause of the first divergence; or what was shown;
/// or that nothing was.
std::string sentence(const Comparison& of);

/// Says why a value is unlikely that is weighed by its drift: how many of its numbers are NaN or
/// infinite, or that it is further from exact than rounding takes it.
std::string weighed(const dump::Row& row);

/// Says what to change or to declare for the first divergence; "" if there is none.
std::string remedy(const Comparison& of);

/// Returns the command that judges the dump again.
std::string command(const Comparison& of);

}  // namespace shardproof::tools
