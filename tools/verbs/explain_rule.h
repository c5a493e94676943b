#pragma once

#include <string>

#include "weights/base/error.h"

namespace shardproof::tools {

/// Prints what a rule says, beside the others of its op; the exit code.
/// Throws Error("explain_c3", ...) if there is none.
int explain_rule(const std::string& label, bool json);

}  // namespace shardproof::tools
