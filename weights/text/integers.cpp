#include "weights/text/integers.h"

#include <algorithm>
#include <cmath>

namespace shardproof {
namespace {

using Names = std::set<std::string>;

/// Names of extents and, if `numbers`, of whole numbers.
Names whole_names(const TextSizes& sizes, bool numbers) {
  Names names;
  for (const auto& [letter, extent] : sizes.extents) names.insert(std::string(1, letter));
  if (numbers)
    for (const auto& [name, value] : sizes.numbers)
      if (value == std::floor(value)) names.insert(name);
  return names;
}

bool is_integer(const Expression& e, const Names& integers) {
  if (e.kind == Expression::Kind::name) return integers.contains(e.text);
  if (e.kind == Expression::Kind::number)
    return e.text.find_first_not_of("-0123456789") == std::string::npos;
  constexpr ModelOp kKeep[] = {ModelOp::add,  ModelOp::sub,    ModelOp::mul, ModelOp::larger,
                               ModelOp::relu, ModelOp::within, ModelOp::abs};
  return std::find(std::begin(kKeep), std::end(kKeep), e.op) != std::end(kKeep) &&
         std::all_of(e.args.begin(), e.args.end(),
                     [&](const Expression& arg) { return is_integer(arg, integers); });
}

bool reads_one_of(const Expression& e, const Names& names) {
  return (e.kind == Expression::Kind::name && names.contains(e.text)) ||
         std::any_of(e.args.begin(), e.args.end(),
                     [&](const Expression& arg) { return reads_one_of(arg, names); });
}

bool has_other_range(const Expression& e, const Names& integers) {
  if (e.kind != Expression::Kind::call) return false;
  if (e.op == ModelOp::within && !is_integer(e.args[0], integers)) return true;
  return std::any_of(e.args.begin(), e.args.end(),
                     [&](const Expression& arg) { return has_other_range(arg, integers); });
}

}  // namespace

std::set<std::string> integers_of(const ModelText& text, const TextSizes& sizes, bool numbers) {
  Names of_positions = {"pos", "slot"}, known = whole_names(sizes, numbers);
  known.insert(of_positions.begin(), of_positions.end());
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text.section(section).lines)
      if (reads_one_of(line.expression, of_positions) && is_integer(line.expression, known)) {
        of_positions.insert(line.name);
        known.insert(line.name);
      }
  return of_positions;
}

bool ranges_over_numbers(const ModelText& text, const TextSizes& sizes) {
  Names integers = integers_of(text, sizes, false);
  integers.merge(whole_names(sizes, false));
  for (const TextSection section : kTextSections)
    for (const TextLine& line : text.section(section).lines)
      if (has_other_range(line.expression, integers)) return true;
  return false;
}

}  // namespace shardproof
