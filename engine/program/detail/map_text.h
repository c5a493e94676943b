#pragma once

#include <string>
#include <string_view>

#include "engine/program/detail/statement.h"
#include "engine/program/program.h"
#include "weights/base/error.h"

namespace shardproof {

/// Reads what stands in the parentheses of a map: "EXPR", "EXPR as BLM where w", and behind a
/// semicolon numbers and formulas by their names: "EXPR; eps = 1e-05, scale = 0.5 [Q=4], less =
/// sub(a, b)".
void read_map(const Statement& statement, Op& op, std::string_view inside);
/// The inverse of read_map.
std::string map_text(const Op& op);

}  // namespace shardproof
