#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weights/text/composites.h"

namespace shardproof {

/// An expression that is a composite. Its names are variables, but for letters, ids, pos and slot:
/// x, y, z are values, gain, bias, a, b weights, n is a number.
struct CompositePattern {
  CompositeKind kind;
  Expression expression;
};

/// Returns the table of all.
const std::vector<CompositePattern>& composite_patterns();

/// Returns the letters that a composite of a pattern sums over.
std::vector<std::string> contracted_by(CompositeKind kind);

/// An expression that is of a pattern's form.
struct CompositeMatch {
  std::map<std::string, Expression, std::less<>> variables;
  // Where the lines in it exist: everywhere, or for the keys that a query sees, and nothing else.
  bool is_plain = true, is_causal = false;
};

/// Returns the line that a name stands for in an expression, or null.
using LineOf = std::function<const TextLine*(const std::string& name)>;
/// Notes where a line exists that is part of a match.
void note(const TextLine& line, const LineOf& line_of, CompositeMatch& match);

/// Returns whether an expression is of the pattern's form, with the operands of sums and products
/// in either order, and names as the lines that they stand for; `match` then has its variables.
bool matches(const Expression& pattern, const Expression& e, const LineOf& line_of,
             CompositeMatch& match);

}  // namespace shardproof
