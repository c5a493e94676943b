#pragma once

#include <string>

#include "tools/report/comparison.h"

namespace shardproof::tools {

/// Returns the comparison as JUnit's XML: a test case for each value of the run.
std::string comparison_junit(const Comparison& of);

/// Returns a GitHub workflow command for each value that fails, "::error title=...::...", and for
/// a dump that is not shown to be right in other ways one of its own.
std::string comparison_annotations(const Comparison& of);

}  // namespace shardproof::tools
