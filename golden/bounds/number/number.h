#pragma once

#include <vector>

#include "golden/bounds/number/declared_arithmetic.h"
#include "golden/bounds/number/functions.h"
#include "golden/bounds/number/interval.h"
#include "weights/base/tensor.h"

namespace shardproof::bounds {

/// A real number of another program's evaluation, known to within a radius: `worst` always holds,
/// `likely` except with probability 2^-71 (docs/bounds.md, T3). likely <= worst.
struct Number {
  double center = 0.0, worst = 0.0, likely = 0.0;

  Interval interval() const { return around(center, worst); }
  Interval likely_interval() const { return around(center, likely); }
  /// Converts with the likely radius.
  operator FunctionValue() const {
    return {center, likely, 0.0};
  }  // NOLINT(google-explicit-constructor)
};

/// Returns a number whose two radii are radius(&Number::worst) and radius(&Number::likely); the
/// argument selects the radius to read from the operands.
template <class Radius>
Number with_radii(double center, Radius&& radius) {
  return {center, radius(&Number::worst), radius(&Number::likely)};
}

/// Returns the smallest number whose intervals contain those of both.
Number hull(const Number& a, const Number& b);

/// Returns x rounded to `format`; the radius is 0 if the interval rounds to one value (T9).
Number stored(const Number& x, NumberFormat format);

/// Adds the rounding of a sum that is materialized before the next operation.
Number as_value(Number sum, const DeclaredArithmetic& by);

/// Elementary operations of another program's arithmetic, with running errors (docs/bounds.md
/// section 5): each result has a relative error of `unit`, and an absolute error of `least` near 0.
class Operations {
 public:
  explicit Operations(const DeclaredArithmetic& declared);
  /// Returns operations whose results are values of their own: in the format of the operations or
  /// of unstored values, whichever is coarser.
  static Operations of_values(DeclaredArithmetic declared);

  Number constant(double v) const;  ///< rounded once
  Number plus(const Number& a, const Number& b) const;
  Number minus(const Number& a, const Number& b) const;
  Number times(const Number& a, const Number& b) const;
  Number over(const Number& a, const Number& b) const;
  Number exp(const Number& x) const;
  Number erf(const Number& x) const;
  Number tanh(const Number& x) const;
  Number sigmoid(const Number& x) const;
  Number rsqrt(const Number& x) const;
  double unit() const { return unit_; }
  double least() const { return least_; }

 private:
  Number rounded(double center, double error_worst, double error_likely) const;
  /// Returns f(x); slope(t) is the maximum of |f'| over [x−t, x+t], the library errs by `ulp`.
  template <class Slope>
  Number function(double center, const Number& x, double ulp, Slope&& slope) const;

  double unit_, least_, operation_unit_;
  Ulp ulp_;
};

}  // namespace shardproof::bounds
