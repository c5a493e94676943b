#include "golden/bounds/number/forms.h"

#include <cmath>

#include "weights/model/softmax.h"

namespace shardproof::bounds {
namespace {

constexpr double kRootOfTwoOverPi = 0.7978845608028654, kCubic = 0.044715;
constexpr double kHalfRoot = 0.7071067811865476;

/// Error of exp where it overflows, or where an f32 library flushes its result to 0.
constexpr double kFlushed = 0x1p-126;

/// The operations of a formula, each rounded to the storage format as `rounds` says.
class Form {
 public:
  Form(const Operations& by, Rounds rounds, NumberFormat storage)
      : by_(by), rounds_(rounds), storage_(storage) {}

  /// A number that overflows is left unrounded: later operations treat it like infinity.
  Number keep(const Number& x) const { return overflows(x) ? x : rounded_if(x, rounds_, storage_); }
  bool overflows(const Number& x) const {
    return rounds_ != Rounds::none && std::isfinite(x.worst) &&
           !std::isfinite(stored(x, storage_).worst + stored(x, storage_).center);
  }
  /// A constant may be kept in more digits than values, as the numbers of Python are.
  Number constant(double v) const {
    return rounded_if(by_.constant(v), rounds_ == Rounds::none ? Rounds::none : Rounds::some,
                      storage_);
  }
  Number plus(const Number& a, const Number& b) const { return keep(by_.plus(a, b)); }
  Number times(const Number& a, const Number& b) const { return keep(by_.times(a, b)); }

  /// 0.5·x·(1 + inner); only the final product is not rounded to storage. Halving is exact.
  Number half_of(const Number& x, const Number& inner) const {
    const Number half{0.5 * x.center, 0.5 * x.worst, 0.5 * x.likely};
    return by_.times(half, plus({1.0, 0.0, 0.0}, inner));
  }
  /// sqrt(2/pi)·(x + 0.044715·x³), with x³ as two products.
  Number cubic(const Number& x) const {
    const Number cube = times(times(x, x), x);
    return times(constant(kRootOfTwoOverPi), plus(x, times(constant(kCubic), cube)));
  }
  Number tanh_form(const Number& x) const { return half_of(x, keep(by_.tanh(cubic(x)))); }
  Number erf_form(const Number& x) const {
    return half_of(x, keep(by_.erf(times(x, constant(kHalfRoot)))));
  }
  /// x·sigmoid(w).
  Number sigmoid_form(const Number& x, const Number& w) const {
    Number y = by_.times(x, keep(by_.sigmoid(w)));
    y.worst += std::abs(x.center) * kFlushed;
    y.likely += std::abs(x.center) * kFlushed;
    return y;
  }
  /// x/(1 + exp(−w)).
  Number quotient_form(const Number& x, const Number& w) const {
    const Number e = by_.exp({-w.center, w.worst, w.likely});
    const Number y = by_.over(x, plus({1.0, 0.0, 0.0}, keep(e)));
    return overflows(e) ? hull(y, {0.0, 0.0, 0.0}) : y;
  }
  /// Hull of the sigmoid, tanh(w/2) and quotient forms. Below w = −80 the quotient is left out:
  /// exp(−w) is so large that adding 1 does not change it.
  Number swish(const Number& x, const Number& w) const {
    const Number half{0.5 * w.center, 0.5 * w.worst, 0.5 * w.likely};
    const Number both = hull(sigmoid_form(x, w), half_of(x, keep(by_.tanh(half))));
    return w.center < -80 ? both : hull(both, quotient_form(x, w));
  }

 private:
  const Operations& by_;
  Rounds rounds_;
  NumberFormat storage_;
};

Number twice(const Number& x) { return {2 * x.center, 2 * x.worst, 2 * x.likely}; }

}  // namespace

Number rounded_if(const Number& x, Rounds rounds, NumberFormat storage) {
  if (rounds == Rounds::none) return x;
  const Number as_stored = stored(x, storage);
  return rounds == Rounds::each ? as_stored : hull(x, as_stored);
}

Number activation_forms(Ffn ffn, Softmax softmax, const Number& x, const Operations& by,
                        Rounds rounds, NumberFormat storage) {
  const Form form(by, rounds, storage);
  switch (ffn) {
    case Ffn::swiglu: {
      const Number w = softmax == Softmax::base2 ? twice(x) : x;
      return form.swish(w, w);
    }
    case Ffn::geglu:
    case Ffn::gelu:
      return hull(form.tanh_form(x), form.swish(x, twice(form.cubic(x))));
    case Ffn::gelu_erf:
      break;
  }
  return form.erf_form(x);
}

Number exponential_forms(Softmax softmax, const Number& score, const Number& top,
                         const Operations& by, const Operations& of_values, Rounds difference,
                         NumberFormat storage) {
  Number x = rounded_if(of_values.minus(score, top), difference, storage);
  // exp2 of scores in units of ln 2: score and max are first multiplied by a constant each.
  const double scaled = 2 * by.unit() * (std::abs(score.center) + std::abs(top.center));
  x.worst += scaled, x.likely += scaled;
  if (softmax == Softmax::base2) x = {kLn2 * x.center, kLn2 * x.worst, kLn2 * x.likely};
  return by.exp(x);
}

}  // namespace shardproof::bounds
