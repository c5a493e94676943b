// Degrees of expressions (docs/field.md section 2.2).
#include <fmt/format.h>

#include <map>
#include <string>

#include "engine/ops/detail/field_map.h"
#include "engine/program/field_degrees.h"

namespace shardproof {
namespace {

class DegreeOfMap {
 public:
  DegreeOfMap(const MapExpression& map, const std::vector<SharedValue>& operands,
              const Field& field, const std::string& step)
      : map_(map), form_(map), operands_(operands), field_(field), step_(step) {}

  FieldDegree degree(const Expression& e) {
    if (e.kind != Expression::Kind::call) return of_word(e.text);
    if (const auto call = form_.call(e)) return function(*call->argument);
    if (const auto d = form_.difference(e))
      return product_degree(function(*d->first), function(*d->second));
    switch (e.op) {
      case ModelOp::add:
      case ModelOp::sub:
        return greater_degree(degree(e.args[0]), degree(e.args[1]));
      case ModelOp::mul:
        return product_degree(degree(e.args[0]), degree(e.args[1]));
      case ModelOp::div:
        return quotient(degree(e.args[0]), e.args[1]);
      case ModelOp::larger:
        return greater_degree(function(e.args[0]), function(e.args[1]));
      default:
        return form_.name(e).empty() ? degree(e.args[0]) : function(e.args[0]);
    }
  }

 private:
  /// An integer has the degree 0, any other number 1.
  FieldDegree of_word(const std::string& text) const {
    if (const auto operand = map_.names.operand(text)) {
      const Sharded& value = *operands_[*operand];
      return value.holds_field() ? value.field().degree : FieldDegree{0, {}, {}};
    }
    const NamedNumber* const named = map_.names.named(text);
    const bool integer =
        named != nullptr ? named->is_extent() : is_whole(map_.names.number(text).value());
    return {integer ? 0 : 1, {}, {}};
  }

  FieldDegree function(const Expression& argument) {
    field_.met(degree(argument));
    return {};
  }

  FieldDegree quotient(FieldDegree x, const Expression& divisor) {
    const FieldDegree y = degree(divisor);
    if (y == FieldDegree{0, {}, {}}) return x;  // an integer
    const int division = field_.divided(fmt::format("{}/{}", step_, divisions_++), y,
                                        count(divisor) * operands_[0]->torus().chips());
    ++x.e[division];
    for (const auto& [number, e] : y.e) x.more[number] += e;
    return x;
  }

  /// The elements of an expression's value on one chip.
  std::int64_t count(const Expression& e) const {
    std::map<char, std::int64_t> extents;
    add_extents(e, extents);
    std::int64_t elements = 1;
    for (const auto& [letter, extent] : extents) elements *= extent;
    return elements;
  }
  void add_extents(const Expression& e, std::map<char, std::int64_t>& extents) const {
    if (const auto operand = map_.names.operand(e.text);
        operand && e.kind == Expression::Kind::name)
      for (std::size_t d = 0; d < operands_[*operand]->local().size(); ++d)
        extents[operands_[*operand]->layout().dims()[d].letter] = operands_[*operand]->local()[d];
    for (const Expression& arg : e.args) add_extents(arg, extents);
  }

  const MapExpression& map_;
  FieldForm form_;
  const std::vector<SharedValue>& operands_;
  const Field& field_;
  std::string step_;
  int divisions_ = 0;
};

}  // namespace

FieldDegree field_degree_of_map(const Op& op, const std::vector<SharedValue>& operands,
                                const Field& field, const FieldScope& scope) {
  const MapNames names(*op.expression, op.constants, op.formulas);
  const MapExpression map{*op.expression, names, scope.act};
  return DegreeOfMap(map, operands, field, scope.step).degree(*op.expression);
}

}  // namespace shardproof
