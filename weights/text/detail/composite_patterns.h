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

/// The expressions that a pattern's variables stand for.
using Bindings = std::map<std::string, Expression, std::less<>>;

/// Returns whether an expression is of the pattern's form, with the operands of sums and products
/// in either order; `bound` then has its variables.
bool matches(const Expression& pattern, const Expression& e, Bindings& bound);

}  // namespace shardproof
