#pragma once

#include <vector>

#include "golden/bounds/number/declared.h"
#include "golden/bounds/number/functions.h"
#include "golden/bounds/number/interval.h"
#include "weights/base/tensor.h"

namespace shardproof::bounds {

/// A real number of somebody's evaluation, known to within a radius: `worst` whatever happened,
/// `likely` but for a probability of 2^-71 (docs/bounds.md, T3). likely <= worst.
struct Number {
  double center = 0.0, worst = 0.0, likely = 0.0;

  Interval interval() const { return around(center, worst); }
  Interval likely_interval() const { return around(center, likely); }
  /// With the likely radius.
  operator Evaluated() const {
    return {center, likely, 0.0};
  }  // NOLINT(google-explicit-constructor)
};

/// A number with both radii made by `radius(pointer to the member to read of operands)`.
template <class Radius>
Number with_radii(double center, Radius&& radius) {
  return {center, radius(&Number::worst), radius(&Number::likely)};
}

/// The numbers of both: their intervals and all between them.
Number hull(const Number& a, const Number& b);

/// As a value of a format: a number without radius where the interval rounds to one (T9).
Number stored(const Number& x, Format format);

/// A sum that is a value of its own before something follows.
Number as_value(Number sum, const Declared& by);

/// Elementary operations of somebody's arithmetic: each is within `unit` of what its operands make
/// it, and of numbers near 0 within `least` (running errors: docs/bounds.md section 5).
class Operations {
 public:
  explicit Operations(const Declared& declared);
  /// Of results that are values of their own, in whatever the operations are in, or f32.
  static Operations of_values(Declared declared);

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

 private:
  Number rounded(double center, double error_worst, double error_likely) const;
  /// f(x), `slope(t)` the largest |f'| over [x−t, x+t], with a library's `ulp`.
  template <class Slope>
  Number function(double center, const Number& x, double ulp, Slope&& slope) const;

  double unit_, least_, operation_unit_;
  Ulp ulp_;
};

}  // namespace shardproof::bounds
