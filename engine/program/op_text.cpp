// The call of an op as text.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/program/detail/map_text.h"
#include "engine/program/detail/parameters_text.h"
#include "engine/program/detail/statement.h"
#include "weights/base/detail/words.h"
#include "weights/model/model_config.h"

namespace shardproof {
namespace {

/// Reads "x", or "loop x" for an operand whose chunks travel around a ring.
void read_operand(const Statement& statement, Op& op, std::string_view text) {
  constexpr std::string_view kLoop = "loop ";
  if (text.starts_with(kLoop)) {
    op.looped.push_back(op.args.size());
    text = trim(text.substr(kLoop.size()));
  }
  op.args.push_back(statement.name(text));
}

/// Reads "BLE,EF->BLF; x, w", a pair of operands per term.
void read_contraction(const Statement& statement, Op& op, std::string_view inside) {
  auto parts = split(inside, ";");
  op.spec = EinsumSpec::parse(parts[0]);
  if (parts.size() != op.spec.terms.size() + 1)
    throw statement.malformed("write einsum(SPEC; A, B), one pair for each term");
  std::vector<std::string> indicators;
  parts.back() = take_where(statement, parts.back(), indicators);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto [a, b] = statement.pair(parts[i], ",");
    read_operand(statement, op, a);
    read_operand(statement, op, b);
  }
  put_where(op, indicators);
}

}  // namespace

Op Statement::op(std::string_view call) const {
  const auto open = call.find('(');
  if (open == std::string_view::npos || call.back() != ')') throw malformed("write OP(ARGUMENTS)");
  const std::string_view word = trim(call.substr(0, open));
  const std::string_view inside = call.substr(open + 1, call.size() - open - 2);
  const OpRow* const known = find_op(word);
  if (known == nullptr) {
    std::vector<std::string> legal;
    for (const OpRow& row : all_ops()) legal.emplace_back(row.name);
    const std::string near = nearest(word, legal);
    throw malformed(fmt::format("'{}' is not an op{}", word,
                                near.empty() ? "" : ", did you mean " + near + "?"));
  }
  Op op;
  op.kind = known->kind;
  if (known->parameters == Parameters::contraction) {
    read_contraction(*this, op, inside);
    return op;
  }
  if (known->parameters == Parameters::expression) {
    read_map(*this, op, inside);
    return op;
  }
  const auto args = split(inside, ",");
  std::vector<std::string> indicators;
  op.args.push_back(name(known->takes_where ? take_where(*this, args[0], indicators) : args[0]));
  read_parameters(*this, op, args);
  put_where(op, indicators);
  return op;
}

bool Op::loops_over(std::size_t arg) const {
  return std::find(looped.begin(), looped.end(), arg) != looped.end();
}

std::string Op::to_string() const {
  std::string text = std::string(shardproof::to_string(kind)) + "(";
  const std::string where = where_text(*this);
  if (op_row(kind).parameters == Parameters::contraction) {
    text += spec.to_string();
    for (std::size_t i = 0; i < operands(); ++i)
      text +=
          fmt::format("{}{}{}", i % 2 == 0 ? "; " : ", ", loops_over(i) ? "loop " : "", args[i]);
    return text + where + ")";
  }
  if (expression) return text + map_text(*this) + ")";
  for (std::size_t i = 0; i < operands(); ++i) text += (i > 0 ? ", " : "") + args[i];
  return text + where + parameters_text(*this) + ")";
}

}  // namespace shardproof
