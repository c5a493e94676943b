#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/text/model_text.h"

namespace shardproof {

/// A number that the expression of a map names. In the field regime it is the random element called
/// "constant NAME", followed by `stream` if it is not empty ("Q=8"), or, where `stream` is
/// "extent", the integer itself.
struct NamedNumber {
  std::string name;
  double value = 0;
  std::string stream = {};
  bool operator==(const NamedNumber&) const = default;

  bool is_extent() const { return stream == "extent"; }
};

/// An operand of a map that the field regime does not read: it computes this expression instead,
/// since a function of it is one of the expression's operands (exp of a difference).
struct NamedFormula {
  std::string name;
  Expression expression;
  bool operator==(const NamedFormula&) const = default;
};

/// Operands and constants by the words of a map's expression.
class MapNames {
 public:
  /// The arguments must outlive it.
  MapNames(const Expression& expression, const std::vector<NamedNumber>& constants,
           const std::vector<NamedFormula>& formulas);

  /// The names that are operands: those of the expression in the order of their first appearance,
  /// then the others of the formulas.
  const std::vector<std::string>& operands() const { return operands_; }
  /// The index of the operand of this name.
  std::optional<std::size_t> operand(std::string_view name) const;
  /// The named number; null if the word is none.
  const NamedNumber* named(std::string_view word) const;
  /// The value of a literal or of a named number.
  std::optional<double> number(std::string_view word) const;
  /// The formula of an operand; null if it has none.
  const Expression* formula(std::string_view name) const;

 private:
  const std::vector<NamedNumber>& constants_;
  const std::vector<NamedFormula>& formulas_;
  std::vector<std::string> operands_;
};

}  // namespace shardproof
