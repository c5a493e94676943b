#include "golden/bounds/text/interval_math.h"

#include <algorithm>
#include <cmath>

#include "golden/bounds/number/forms.h"
#include "weights/model/softmax.h"

namespace shardproof::bounds {
namespace {

/// Returns the smallest number whose intervals are from low to high, each of a radius.
template <class Low, class High>
Number between(Low&& low, High&& high) {
  const double center = 0.5 * (low(&Number::worst) + high(&Number::worst));
  return with_radii(center, [&](double Number::*radius) {
    const double half = std::max(center - low(radius), high(radius) - center);
    return std::isnan(half) ? kInfinity : half;
  });
}

/// Returns a function that never falls, applied to a number.
template <class F>
Number rising(const Number& x, F&& f) {
  if (x.worst == 0 || !std::isfinite(x.worst)) return {f(x.center), x.worst, x.worst};
  return between([&](double Number::*r) { return f(x.center - x.*r); },
                 [&](double Number::*r) { return f(x.center + x.*r); });
}

Number larger(const Number& a, const Number& b) {
  const double worst = std::max(a.worst, b.worst);
  if (worst == 0 || !std::isfinite(worst)) return {std::max(a.center, b.center), worst, worst};
  return between([&](double Number::*r) { return std::max(a.center - a.*r, b.center - b.*r); },
                 [&](double Number::*r) { return std::max(a.center + a.*r, b.center + b.*r); });
}

Number widened(Number x, double by) {
  x.worst += by, x.likely += by;
  return x;
}

Number scaled_by(const Number& x, double by) {
  return {x.center * by, x.worst * std::abs(by), x.likely * std::abs(by)};
}

/// Returns a function of two integers; of unknown ones an unknown number.
Number integral(ModelOp op, const Number& a, const Number& b) {
  const double worst = std::max(a.worst, b.worst) > 0 ? kInfinity : 0.0;
  switch (op) {
    case ModelOp::add:
      return {a.center + b.center, worst, worst};
    case ModelOp::sub:
      return {a.center - b.center, worst, worst};
    case ModelOp::mul:
      return {a.center * b.center, worst, worst};
    default:
      return {std::max(a.center, b.center), worst, worst};
  }
}

/// The natural logarithm; an argument that may not be positive gives an unknown number.
Number log_of(const Number& x, double error) {
  return with_radii(std::log(x.center), [&](double Number::*r) {
    const double least = x.center - x.*r;
    if (!(least > 0)) return kInfinity;
    return x.*r / least + error * std::abs(std::log(x.center)) + error;
  });
}

Number sqrt_of(const Number& x, double error) {
  const double root = std::sqrt(x.center);
  return with_radii(root, [&](double Number::*r) {
    if (x.*r == 0) return error * root;
    const double least = x.center - x.*r;
    return least > 0 ? x.*r / std::sqrt(least) + error * root : kInfinity;
  });
}

}  // namespace

Estimate IntervalMath::of_sum(const bounds::Sum& sum, const LineArithmetic& by) {
  const Number value = bound(sum, by.declared);
  return {by.may_round ? rounded_if(value, Rounds::some, by.declared.values) : value};
}

Estimate IntervalMath::Sum::value() const { return of_sum(sum_.sum(), *by_); }

Estimate IntervalMath::rounded(const Number& x) const {
  if (!line_.may_round) return {x};
  return {rounded_if(x, Rounds::some, line_.declared.values)};
}

Estimate IntervalMath::word(const std::string& word) const {
  const double v = sizes_.number(word);
  if (line_.exactly || v == nearest(v, NumberFormat::bf16) || std::isinf(v)) return number(v);
  if (v == nearest(v, NumberFormat::f32)) return rounded({v, 0.0, 0.0});
  return rounded(Operations(line_.declared).constant(v));
}

Estimate IntervalMath::named(const Estimate& v) const {
  if (!line_.in_loop || line_.exactly) return v;
  // A fused loop may carry the number as it is.
  const Number once = shardproof::bounds::stored(v.number, *line_.in_loop);
  return {narrow_storage(*line_.in_loop) ? hull(v.number, once) : once};
}

Estimate IntervalMath::stored(const Estimate& v) const {
  if (line_.exactly) return v;
  return {shardproof::bounds::stored(v.number, line_.declared.values)};
}

Estimate IntervalMath::pair(ModelOp op, const Estimate& a, const Estimate& b) const {
  if (line_.integral) return {integral(op, a.number, b.number)};
  const Operations by(line_.declared);
  switch (op) {
    case ModelOp::add:
    case ModelOp::sub: {
      const Number sum =
          op == ModelOp::add ? by.plus(a.number, b.number) : by.minus(a.number, b.number);
      // Several terms in any order: of each sum the magnitudes of its terms bound every other sum.
      const double terms = std::abs(a.number.center) + std::abs(b.number.center);
      if (!std::isfinite(terms)) return {sum};
      return {rounded(widened(sum, by.unit() * terms)).number, terms};
    }
    case ModelOp::mul:
      return rounded(by.times(a.number, b.number));
    case ModelOp::div: {
      // Also as a product with a rounded reciprocal.
      const Number ratio = by.over(a.number, b.number);
      return rounded(widened(ratio, by.unit() * std::abs(ratio.center)));
    }
    default:
      return {larger(a.number, b.number)};
  }
}

Estimate IntervalMath::function(ModelOp op, const Estimate& of) const {
  const Number& x = of.number;
  const Operations by(line_.declared);
  const Rounds rounds = line_.may_round ? Rounds::some : Rounds::none;
  const double unit = line_.declared.operations.unit;
  switch (op) {
    case ModelOp::exp:
    case ModelOp::exp2: {
      // As exp, or as exp2 of scaled terms: each of them is first multiplied by a constant.
      const Number power = op == ModelOp::exp ? x : scaled_by(x, kLn2);
      const double terms = op == ModelOp::exp ? of.terms : of.terms * kLn2;
      return rounded(by.exp(widened(power, 2 * by.unit() * (std::abs(power.center) + terms))));
    }
    case ModelOp::log:
      return rounded(log_of(x, 2 * line_.declared.ulp.exp * unit + 0x1p-49));
    case ModelOp::sqrt:
      return rounded(sqrt_of(x, 2 * line_.declared.ulp.rsqrt * unit + 0x1p-52));
    case ModelOp::tanh:
      return rounded(by.tanh(x));
    case ModelOp::sigmoid:
      return rounded(by.sigmoid(x));
    case ModelOp::relu:
      return {rising(x, [](double v) { return v > 0 ? v : 0.0; })};
    case ModelOp::floor:
      return {rising(x, [](double v) { return std::floor(v); })};
    case ModelOp::round:
      return {rising(x, [](double v) { return std::nearbyint(v); })};
    case ModelOp::abs:
      return {larger(x, {-x.center, x.worst, x.likely})};
    case ModelOp::bf16:
      return {shardproof::bounds::stored(x, NumberFormat::bf16)};
    case ModelOp::silu:
      return rounded(
          activation_forms(Ffn::swiglu, Softmax::base_e, x, by, rounds, line_.declared.values));
    case ModelOp::gelu:
      return rounded(
          activation_forms(Ffn::gelu_erf, Softmax::base_e, x, by, rounds, line_.declared.values));
    case ModelOp::gelu_tanh:
      return rounded(
          activation_forms(Ffn::gelu, Softmax::base_e, x, by, rounds, line_.declared.values));
    default:
      return stored(of);
  }
}

Estimate IntervalMath::ranged(ModelOp op, const Estimate& of, double low, double high) const {
  const Number& x = of.number;
  if (op != ModelOp::within)
    return {rising(x, [&](double v) { return std::min(std::max(v, low), high); })};
  const Interval in = x.interval();
  if (low <= in.low && in.high <= high) return number(1);
  if (in.high < low || in.low > high) return number(0);
  return {{0.5, 0.5, 0.5}};
}

Estimate IntervalMath::negative(const Estimate& x) {
  return {{-x.number.center, x.number.worst, x.number.likely}};
}

Estimate IntervalMath::divided(const Estimate& x, std::int64_t by) const {
  return pair(ModelOp::div, x, number(static_cast<double>(by)));
}

std::vector<Estimate> IntervalMath::top(const std::vector<Estimate>& all, std::size_t k) {
  std::vector<Estimate> marks;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Interval own = all[i].number.interval();
    std::size_t surely = 0, perhaps = 0;  // others that come before this one
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (j == i) continue;
      const Interval other = all[j].number.interval();
      if (other.low > own.high || (other.low == own.high && j < i)) ++surely;
      if (other.high > own.low || (other.high == own.low && j < i)) ++perhaps;
    }
    marks.push_back(perhaps < k ? number(1) : surely >= k ? number(0) : Estimate{{0.5, 0.5, 0.5}});
  }
  return marks;
}

Estimate IntervalMath::gathered(const Estimate& x) const {
  // A sharded lookup adds a row and zeros: rounding it again on the wire changes nothing.
  if (line_.exactly || line_.declared.wire_roundings == 0) return x;
  return {rounded_if(x.number, Rounds::some, line_.declared.wire)};
}

}  // namespace shardproof::bounds
