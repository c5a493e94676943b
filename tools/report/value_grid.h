#pragma once

#include <string>

#include "tools/report/comparison.h"

namespace shardproof::tools {

/// Returns the marks of all values of the run as an HTML table: a row for each layer of each pass,
/// a column for each name, both in the order of the run. A cell with several values, such as a
/// product before and after its bias, has the worst of their marks.
std::string value_grid(const Comparison& of);

/// Returns all values as an HTML table: verdict, elements, distance from exact, bound, drift, and
/// what is said of each.
std::string value_list(const Comparison& of);

}  // namespace shardproof::tools
