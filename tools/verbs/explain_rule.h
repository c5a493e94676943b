#pragma once

#include <string>

#include "weights/base/error.h"

namespace shardproof::tools {

/// Prints a rule's text and the other rules of its op; returns the exit code. Throws
/// Error("explain_c3", ...) if there is no such rule.
int explain_rule(const std::string& label, bool json);

}  // namespace shardproof::tools
