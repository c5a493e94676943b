#include "oracle/graph/detail/field_math.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <set>

#include "oracle/field/detail/philox.h"

namespace shardproof::oracle::graph {
namespace {

bool is_call(const Expression& e, ModelOp op) {
  return e.kind == Expression::Kind::call && e.op == op;
}
bool is_word(const Expression& e, std::string_view word) {
  return e.kind != Expression::Kind::call && e.text == word;
}

/// Names of the functions of docs/field.md section 1.3 under which ops go; others go by their own.
std::string_view name_of(ModelOp op) {
  switch (op) {
    case ModelOp::silu:
      return "swish";
    case ModelOp::gelu:
      return "gelu_erf";
    case ModelOp::gelu_tanh:
      return "gelu";
    default:
      return row_of(op).name;
  }
}

}  // namespace

field::Number FieldMath::word(const std::string& word) const {
  if (word.size() == 1 && sizes_.extents.contains(word[0]))
    return math_.integer(sizes_.extents.at(word[0]));
  const TextNumber* const number = text_.number(word);
  if (number == nullptr) {
    const double v = sizes_.number(word);
    if (v == std::floor(v) && std::fabs(v) < 0x1p53)
      return math_.integer(static_cast<std::int64_t>(v));
    return random_.stream("constant literal " + word, {1}).data[0];
  }
  std::string name = "constant " + word;
  if (number->formula)
    for (const std::string& read : number->formula->names())
      name += fmt::format(" {}={}", read, sizes_.number(read));
  return random_.stream(name, {1}).data[0];
}

field::Number FieldMath::pair(ModelOp op, const Scalar& a, const Scalar& b) const {
  switch (op) {
    case ModelOp::add:
      return math_.add(a, b);
    case ModelOp::sub:
      return math_.subtract(a, b);
    case ModelOp::mul:
      return math_.multiply(a, b);
    case ModelOp::div:
      if (const auto lane = math_.zero_lane(b))
        throw Error("field_zero",
                    fmt::format("a divisor has no inverse, lane {} of it is 0", *lane));
      return math_.multiply(a, math_.inverse(b));
    default:  // larger: a function of the set
      return math_.add(function("larger", a), function("larger", b));
  }
}

field::Number FieldMath::function(ModelOp op, const Scalar& x) const {
  return op == ModelOp::store ? stored(x) : function(name_of(op), x);
}

field::Number FieldMath::function(std::string_view name, const Scalar& x) const {
  if (field::keeps_zero(name) && x == Scalar{}) return x;
  return random_.function(field::fnv1a64(name), x);
}

field::Number FieldMath::ranged(ModelOp op, const Scalar& x, double low, double high) const {
  const auto integer = op == ModelOp::within ? integer_of(x) : std::nullopt;
  if (!integer) return function(fmt::format("{} {} {}", row_of(op).name, low, high), x);
  const auto v = static_cast<double>(*integer);
  return number(low <= v && v <= high ? 1 : 0);
}

std::optional<std::int64_t> FieldMath::integer_of(const Scalar& v) const {
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 31;
  const bool minus = v.lane[0] > kSmall;
  const auto size = static_cast<std::int64_t>(minus ? math_.p() - v.lane[0] : v.lane[0]);
  if (size > static_cast<std::int64_t>(kSmall)) return std::nullopt;
  const std::int64_t integer = minus ? -size : size;
  if (math_.integer(integer) != v) return std::nullopt;
  return integer;
}

double FieldMath::index(const Scalar& v) const {
  const auto integer = integer_of(v);
  return integer ? static_cast<double>(*integer) : -1.0;
}

std::optional<FieldMath::Formula> FieldMath::formula(const Expression& e) const {
  if (is_call(e, ModelOp::silu) && is_call(e.args[0], ModelOp::mul) &&
      is_word(e.args[0].args[1], "2"))
    return Formula{"swish2", &e.args[0].args[0]};
  // 1/sqrt(x/E + eps)
  if (!is_call(e, ModelOp::div) || !is_word(e.args[0], "1") || !is_call(e.args[1], ModelOp::sqrt))
    return std::nullopt;
  const Expression& under = e.args[1].args[0];
  if (!is_call(under, ModelOp::add) || !is_call(under.args[0], ModelOp::div)) return std::nullopt;
  const Expression &by = under.args[0].args[1], &eps = under.args[1];
  if (by.kind == Expression::Kind::call || eps.kind == Expression::Kind::call ||
      !text_.is_number(by.text) || !text_.is_number(eps.text))
    return std::nullopt;
  char hexadecimal[64];  // "0x1p-20"
  std::snprintf(hexadecimal, sizeof hexadecimal, "%a", sizes_.number(eps.text));
  return Formula{fmt::format("norm {}={} eps={}", by.text,
                             static_cast<std::int64_t>(sizes_.number(by.text)), hexadecimal),
                 &under.args[0].args[0]};
}

std::optional<std::pair<const Expression*, const Expression*>> FieldMath::difference(
    const Expression& e, TextSection section) const {
  if (!is_call(e, ModelOp::exp) && !is_call(e, ModelOp::exp2)) return std::nullopt;
  const Expression* of = &e.args[0];
  if (of->kind == Expression::Kind::name)
    for (const TextLine& line : text_.section(section).lines)
      if (line.name == of->text) of = &line.expression;
  if (!is_call(*of, ModelOp::sub)) return std::nullopt;
  return std::pair(&of->args[0], &of->args[1]);
}

}  // namespace shardproof::oracle::graph
