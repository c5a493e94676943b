#include "engine/ops/map_names.h"

#include <algorithm>

#include "weights/base/detail/word_table.h"
#include "weights/text/formula.h"

namespace shardproof {
namespace {

/// Appends the names of an expression that are not yet among `names`.
void add_names(const Expression& e, std::vector<std::string>& names) {
  if (e.kind == Expression::Kind::name &&
      std::find(names.begin(), names.end(), e.text) == names.end())
    names.push_back(e.text);
  for (const Expression& arg : e.args) add_names(arg, names);
}

}  // namespace

MapNames::MapNames(const Expression& expression, const std::vector<NamedNumber>& constants,
                   const std::vector<NamedFormula>& formulas)
    : constants_(constants), formulas_(formulas) {
  add_names(expression, operands_);
  for (const NamedFormula& formula : formulas) add_names(formula.expression, operands_);
  std::erase_if(operands_, [&](const std::string& name) { return named(name) != nullptr; });
}

std::optional<std::size_t> MapNames::operand(std::string_view name) const {
  const auto at = std::find(operands_.begin(), operands_.end(), name);
  if (at == operands_.end()) return std::nullopt;
  return static_cast<std::size_t>(at - operands_.begin());
}

const NamedNumber* MapNames::named(std::string_view word) const {
  return row_named(constants_, word);
}

std::optional<double> MapNames::number(std::string_view word) const {
  if (const auto literal = number_in(word)) return literal;
  const NamedNumber* const number = named(word);
  return number == nullptr ? std::nullopt : std::optional(number->value);
}

const Expression* MapNames::formula(std::string_view name) const {
  const NamedFormula* const formula = row_named(formulas_, name);
  return formula == nullptr ? nullptr : &formula->expression;
}

}  // namespace shardproof
