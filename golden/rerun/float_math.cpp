#include "golden/rerun/float_math.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardproof::rerun {

/// The terms of an einsum's elements in one pair of operands: where an element's first term is, and
/// how far each of them is from it.
struct EinsumTerms {
  std::vector<std::size_t> a_first, b_first, a_next, b_next;
};

namespace {

using oracle::graph::count_of;
using oracle::graph::places_in;

template <class Value>
EinsumTerms terms_of(const Value& a, const Value& b, const std::string& letters,
                     const Shape& shape) {
  std::string over;
  Shape over_shape;
  for (const Value* v : {&a, &b})
    for (std::size_t i = 0; i < v->letters.size(); ++i)
      if ((letters + over).find(v->letters[i]) == std::string::npos) {
        over += v->letters[i];
        over_shape.push_back(v->shape[i]);
      }
  return {places_in(letters, shape, a.letters, a.shape),
          places_in(letters, shape, b.letters, b.shape),
          places_in(over, over_shape, a.letters, a.shape),
          places_in(over, over_shape, b.letters, b.shape)};
}

/// Returns whether a line is a contraction with a layer's weight.
bool is_matrix_product(const TextModel& model, const TextLine& line, std::int64_t layer) {
  const Expression* e = &line.expression;
  while (e->kind == Expression::Kind::call && e->op == ModelOp::store) e = &e->args[0];
  return layer >= 0 && e->kind == Expression::Kind::call && e->op == ModelOp::einsum &&
         std::any_of(e->args.begin(), e->args.end(),
                     [&](const Expression& arg) { return model.weight(arg.text) != nullptr; });
}

}  // namespace

template <class Real>
FloatMath<Real>::FloatMath(const TextModel& model, const Arithmetic& arithmetic, std::uint64_t seed,
                           std::uint64_t run)
    : model_(model),
      arithmetic_(arithmetic),
      seed_(seed),
      run_(run),
      open_((arithmetic.places.on | arithmetic.places.drawn) != 0),
      chance_(draw("rerun chance")) {
  Draw forms = draw("rerun forms");
  sigmoid_ = forms.coin();
  one_plus_ = forms.coin();
}

template <class Real>
void FloatMath<Real>::begin(const TextLine& line, std::int64_t layer, bool) const {
  name_ = line.name;
  id_ = fmt::format("{}.{}", layer, line.name);
  orders_.clear();
  sums_ = {};
  if (!is_matrix_product(model_, line, layer)) return;
  sums_ = {arithmetic_.sums == NumberFormat::f32 ? NumberFormat::f64 : arithmetic_.sums,
           arithmetic_.wire_roundings, arithmetic_.wire};
}

template <class Real>
const Order& FloatMath<Real>::order(std::size_t n) const {
  const auto at = orders_.find(n);
  if (at != orders_.end()) return at->second;
  return orders_.emplace(n, Order(n, draw(fmt::format("rerun order {} {}", id_, n)))).first->second;
}

/// For random rounding adds a random offset of at most half a step before rounding to nearest.
template <class Real>
Real FloatMath<Real>::kept(Real v, NumberFormat format) const {
  if (!arithmetic_.by_chance) return rounded(v, format);
  return rounded(
      static_cast<Real>(static_cast<double>(v) + (chance_.fraction() - 0.5) * step_of(v, format)),
      format);
}

template <class Real>
Real FloatMath<Real>::rounds(ModelOp op, Real v) const {
  if (!open_) return v;
  const auto [at, is_new] = ops_.try_emplace({name_, op}, false);
  if (is_new) at->second = draw(fmt::format("rerun place {} {}", name_, row_of(op).name)).coin();
  return at->second ? kept(v, arithmetic_.values) : v;
}

template <class Real>
Real FloatMath<Real>::pair(ModelOp op, Real a, Real b) const {
  switch (op) {
    case ModelOp::add:
      return rounds(op, a + b);
    case ModelOp::sub:
      return rounds(op, a - b);
    case ModelOp::mul:
      return rounds(op, a * b);
    case ModelOp::div:
      return rounds(op, a / b);
    default:
      return std::max(a, b);
  }
}

template <class Real>
Real FloatMath<Real>::function(ModelOp op, Real x) const {
  const auto sigmoid = [](Real v) { return 1 / (1 + std::exp(-v)); };
  switch (op) {
    case ModelOp::exp:
      return rounds(op, std::exp(x));
    case ModelOp::exp2:
      return rounds(op, std::exp2(x));
    case ModelOp::log:
      return rounds(op, std::log(x));
    case ModelOp::sqrt:
      return rounds(op, std::sqrt(x));
    case ModelOp::tanh:
      return rounds(op, std::tanh(x));
    case ModelOp::sigmoid:
      return rounds(op, sigmoid(x));
    case ModelOp::relu:
      return x > 0 ? x : Real{0};
    case ModelOp::floor:
      return std::floor(x);
    case ModelOp::round:
      return std::nearbyint(x);
    case ModelOp::abs:
      return std::abs(x);
    case ModelOp::bf16:
      return kept(x, NumberFormat::bf16);
    case ModelOp::silu:
      return rounds(op, sigmoid_ ? x * sigmoid(x) : x / (1 + std::exp(-x)));
    case ModelOp::gelu: {
      const Real at = x / std::sqrt(Real{2});
      return rounds(op, Real{0.5} * x * (one_plus_ ? 1 + std::erf(at) : std::erfc(-at)));
    }
    case ModelOp::gelu_tanh: {
      const Real at =
          static_cast<Real>(0.7978845608028654) * (x + static_cast<Real>(0.044715) * x * x * x);
      return rounds(op,
                    one_plus_ ? Real{0.5} * x * (1 + std::tanh(at)) : x / (1 + std::exp(-2 * at)));
    }
    default:
      return stored(x);
  }
}

template <class Real>
Real FloatMath<Real>::ranged(ModelOp op, Real x, double low, double high) {
  const auto v = static_cast<double>(x);
  if (op == ModelOp::within) return low <= v && v <= high ? Real{1} : Real{0};
  return number(std::min(std::max(v, low), high));
}

template <class Real>
auto FloatMath<Real>::product(const Expression& e,
                              const std::vector<std::pair<Value, Value>>& operands,
                              const Shape& shape, bool) const -> std::optional<Value> {
  Value y{e.terms[0].result, shape, {}};
  std::vector<EinsumTerms> terms;
  std::vector<std::pair<std::size_t, std::size_t>> all;  // pair of operands, term of it
  for (std::size_t t = 0; t < operands.size(); ++t) {
    terms.push_back(terms_of(operands[t].first, operands[t].second, y.letters, shape));
    for (std::size_t k = 0; k < terms[t].a_next.size(); ++k) all.emplace_back(t, k);
  }
  y.data.resize(count_of(shape));
  for (std::size_t i = 0; i < y.data.size(); ++i)
    y.data[i] =
        rounds(ModelOp::einsum,
               added(
                   all.size(),
                   [&](std::size_t n) {
                     const auto [t, k] = all[n];
                     return operands[t].first.data[terms[t].a_first[i] + terms[t].a_next[k]];
                   },
                   [&](std::size_t n) {
                     const auto [t, k] = all[n];
                     return &operands[t].second.data[terms[t].b_first[i] + terms[t].b_next[k]];
                   }));
  return y;
}

template class FloatMath<float>;
template class FloatMath<double>;

}  // namespace shardproof::rerun
