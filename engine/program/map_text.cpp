// The call of a map as text.
#include "engine/program/detail/map_text.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "engine/ops/map_names.h"
#include "engine/program/detail/parameters_text.h"
#include "weights/base/detail/words.h"
#include "weights/text/formula.h"

namespace shardproof {
namespace {

/// Reads "eps = 1e-05", "scale = 0.5 [Q=4]" or "less = sub(a, b)".
void read_named(const Statement& statement, Op& op, std::string_view text) {
  const auto equals = text.find(" = ");
  if (equals == std::string_view::npos)
    throw statement.malformed("write NAME = VALUE, NAME = VALUE [STREAM] or NAME = EXPRESSION");
  const std::string name = statement.name(trim(text.substr(0, equals)));
  std::string_view value = trim(text.substr(equals + 3));
  if (value.find('(') != std::string_view::npos) {
    op.formulas.push_back({name, parse_expression(value)});
    return;
  }
  std::string stream;
  if (const auto open = value.find('['); open != std::string_view::npos) {
    if (value.back() != ']' || open + 2 >= value.size())
      throw statement.malformed("what a number is in the field is written [Q=4] or [extent]");
    stream = std::string(trim(value.substr(open + 1, value.size() - open - 2)));
    value = trim(value.substr(0, open));
  }
  const std::optional<double> number = number_in(value);
  if (!number) throw statement.malformed(fmt::format("'{}' is not a number", value));
  op.constants.push_back({name, *number, stream});
}

}  // namespace

void read_map(const Statement& statement, Op& op, std::string_view inside) {
  const auto parts = split_arguments(inside, ';');
  if (parts.size() > 2) throw statement.malformed("write map(EXPRESSION; NAME = VALUE, ...)");
  std::vector<std::string> indicators;
  std::string_view computed = take_where(statement, parts[0], indicators);
  constexpr std::string_view kAs = " as ";
  if (const auto at = computed.rfind(kAs); at != std::string_view::npos) {
    for (const char c : trim(computed.substr(at + kAs.size())))
      op.parameter += statement.letter(std::string_view(&c, 1));
    computed = trim(computed.substr(0, at));
  }
  op.expression = parse_expression(computed);
  if (parts.size() == 2)
    for (const std::string_view named : split_arguments(parts[1], ','))
      read_named(statement, op, named);
  op.args = MapNames(*op.expression, op.constants, op.formulas).operands();
  if (op.args.empty()) throw statement.malformed("a map reads a value");
  put_where(op, indicators);
}

std::string map_text(const Op& op) {
  std::string text = print(*op.expression);
  if (!op.parameter.empty()) text += " as " + op.parameter;
  text += where_text(op);
  std::string_view between = "; ";
  for (const NamedNumber& number : op.constants) {
    text += fmt::format("{}{} = {}", between, number.name, number.value);
    if (!number.stream.empty()) text += fmt::format(" [{}]", number.stream);
    between = ", ";
  }
  for (const NamedFormula& formula : op.formulas) {
    text += fmt::format("{}{} = {}", between, formula.name, print(formula.expression));
    between = ", ";
  }
  return text;
}

}  // namespace shardproof
