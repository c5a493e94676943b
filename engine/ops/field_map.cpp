// The meaning of expressions in the field regime (docs/field.md).
#include "engine/ops/detail/field_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace shardproof {
namespace {

bool is_call_of(const Expression& e, ModelOp op) {
  return e.kind == Expression::Kind::call && e.op == op;
}

bool is_literal(const Expression& e, std::string_view text) {
  return e.kind == Expression::Kind::number && e.text == text;
}

}  // namespace

std::optional<FieldCall> FieldForm::call(const Expression& e) const {
  if (is_call_of(e, ModelOp::silu) && is_call_of(e.args[0], ModelOp::mul) &&
      is_literal(e.args[0].args[1], "2"))
    return FieldCall{"swish2", &e.args[0].args[0]};
  // 1/sqrt(x/E + eps)
  if (!is_call_of(e, ModelOp::div) || !is_literal(e.args[0], "1") ||
      !is_call_of(e.args[1], ModelOp::sqrt))
    return std::nullopt;
  const Expression& under = e.args[1].args[0];
  if (!is_call_of(under, ModelOp::add) || !is_call_of(under.args[0], ModelOp::div))
    return std::nullopt;
  const Expression &by = under.args[0].args[1], &eps = under.args[1];
  if (by.kind == Expression::Kind::call || eps.kind == Expression::Kind::call) return std::nullopt;
  const auto n = map_.names.number(by.text), least = map_.names.number(eps.text);
  if (!n || !least) return std::nullopt;
  return FieldCall{
      fmt::format("norm {}={} eps={:a}", by.text, static_cast<std::int64_t>(*n), *least),
      &under.args[0].args[0]};
}

std::optional<FieldDifference> FieldForm::difference(const Expression& e) const {
  if (!is_call_of(e, ModelOp::exp) && !is_call_of(e, ModelOp::exp2)) return std::nullopt;
  const Expression* of = &e.args[0];
  if (of->kind == Expression::Kind::name)
    if (const Expression* const formula = map_.names.formula(of->text)) of = formula;
  if (!is_call_of(*of, ModelOp::sub)) return std::nullopt;
  return FieldDifference{&of->args[0], &of->args[1], e.op == ModelOp::exp2};
}

std::string FieldForm::name(const Expression& e) const {
  switch (e.op) {
    case ModelOp::store:
      return map_.act == NumberFormat::bf16 ? "bf16" : "";
    case ModelOp::silu:
      return "swish";
    case ModelOp::gelu:
      return "gelu_erf";
    case ModelOp::gelu_tanh:
      return "gelu";
    default:
      break;
  }
  std::string name(row_of(e.op).name);
  for (const std::string& word : e.parameters)
    name += fmt::format(" {}", map_.names.number(word).value());
  return name;
}

FieldElement FieldMap::word(std::string_view word) const {
  const double v = map_.names.number(word).value();
  const auto whole = [&] { return field_->integer(static_cast<std::int64_t>(v)); };
  if (const NamedNumber* const number = map_.names.named(word)) {
    if (number->is_extent()) return whole();
    return field_->constant("constant " + number->name + (number->stream.empty() ? "" : " ") +
                            number->stream);
  }
  if (is_whole(v)) return whole();
  return field_->constant(fmt::format("constant literal {}", word));
}

FieldElement FieldMap::pair(ModelOp op, const FieldElement& a, const FieldElement& b) const {
  switch (op) {
    case ModelOp::add:
      return field_->add(a, b);
    case ModelOp::sub:
      return field_->subtract(a, b);
    case ModelOp::mul:
      return field_->multiply(a, b);
    case ModelOp::div:
      return field_->multiply(a, field_->inverse(b));
    case ModelOp::larger: {  // a function of the set
      const FieldFunction& of = field_->function("larger");
      return field_->add(field_->apply(of, a), field_->apply(of, b));
    }
    default:
      throw std::logic_error("a map with an op that is not one of two numbers");
  }
}

FieldMap::Function FieldMap::named(std::string_view name) const {
  constexpr std::array<std::string_view, 5> kFromZero{"swish", "swish2", "gelu", "gelu_erf",
                                                      "bf16"};
  const Field& field = *field_;
  const FieldFunction& f = field.function(name);
  if (std::find(kFromZero.begin(), kFromZero.end(), name) != kFromZero.end())
    return [&](const FieldElement& x) { return field.apply_from_zero(f, x); };
  return [&](const FieldElement& x) { return field.apply(f, x); };
}

FieldMap::Function FieldMap::function(const Expression& e) const {
  const std::string name = form_.name(e);
  if (name.empty()) return [](const FieldElement& x) { return x; };
  Function random = named(name);
  if (e.op != ModelOp::within) return random;
  const auto parameter = [&](std::size_t i) {
    return map_.names.number(e.parameters.at(i)).value();
  };
  return [this, random, low = parameter(0), high = parameter(1)](const FieldElement& x) {
    const auto v = integer_of(x);
    if (!v) return random(x);
    const auto i = static_cast<double>(*v);
    return integer(low <= i && i <= high ? 1 : 0);
  };
}

std::optional<std::int64_t> FieldMap::integer_of(const FieldElement& v) const {
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 31;
  if (!field_->is_number(v)) return std::nullopt;
  const bool negative = v.lane[0] > kSmall;
  const std::uint64_t size = negative ? field_->p() - v.lane[0] : v.lane[0];
  if (size > kSmall) return std::nullopt;
  const std::int64_t i =
      negative ? -static_cast<std::int64_t>(size) : static_cast<std::int64_t>(size);
  if (field_->integer(i) != v) return std::nullopt;
  return i;
}

}  // namespace shardproof
