#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/program/detail/statement.h"
#include "engine/program/program.h"
#include "weights/base/error.h"

namespace shardproof {

/// Reads what follows the first operand of a call, by the form of the op: parameters or more
/// operands.
void read_parameters(const Statement& statement, Op& op, const std::vector<std::string_view>& args);
/// Returns the parameters as a call prints them behind its operands: ", E, zy".
std::string parameters_text(const Op& op);

/// Takes " where w and u" off the end of an operand or an expression; `indicators` are w and u.
std::string_view take_where(const Statement& statement, std::string_view text,
                            std::vector<std::string>& indicators);
/// Appends the indicators to the operands.
void put_where(Op& op, const std::vector<std::string>& indicators);
/// " where w and u", or nothing.
std::string where_text(const Op& op);

}  // namespace shardproof
