#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// Checks a text by rules that speak of no extent. Throws Error, each naming file, line and value:
/// "model_c1" (a name, flag or letter that is not defined, or does not exist where the line does),
/// "model_c2" (defined twice; two definitions are for complementary guards and have the same
/// letters), "model_c3" (declared letters that are not the expression's, in any order), "model_c4"
/// (a section without its result, embed : BLE, out : BLE or logits : BLV), "model_c6" (einsum:
/// operands with other letters than the spec's, a result's letter that no operand has, terms of
/// several results), "model_c7" (a reduction, top, turn or view of letters that the operand lacks),
/// "model_c8" (gather: a table that does not begin with the letter), "model_c9" (append: an operand
/// without L or with M, positions other than pos), "model_c10" (where: no indicator, or one with
/// other letters), "model_c11" (before: not a value of the section with B and L), "model_c12"
/// (before: a start with letters that the value without L lacks), "model_c13" (a line that needs
/// itself one position earlier appends, reduces, contracts or splits L).
void check_model_text(const ModelText& text);

/// The names that a line reads: in place, and one position earlier by `before`.
struct Reads {
  std::vector<std::string> now, before;
};
/// Returns the value names that a line reads, each once; those of numbers and letters are not among
/// them.
Reads reads_of(const ModelText& text, const TextLine& line);

/// Returns whether an expression's value is 0 or 1 everywhere: within, top, products of indicators
/// and views of them. `indicators`: the names of others.
bool is_indicator(const Expression& expression,
                  const std::set<std::string, std::less<>>& indicators);

/// Returns whether some line has one of these ops.
bool has_any(const ModelText& text, std::initializer_list<ModelOp> ops);

}  // namespace shardproof
