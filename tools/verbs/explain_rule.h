#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/verbs/rules.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// Returns a rule as `explain --rule LABEL --json` prints it.
nlohmann::json rule_json(const Rule& rule);

/// Prints a rule, what breaks it, and of an op the other rules; returns the exit code. Throws
/// Error("explain_c3", ...) if there is no such rule.
int explain_rule(const std::string& label, bool json);

/// Prints all rules, and what breaks each, as a page of Markdown; returns the exit code.
int print_rules_page();

}  // namespace shardproof::tools
