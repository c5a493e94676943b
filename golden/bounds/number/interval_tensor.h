#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "golden/bounds/number/declared_arithmetic.h"
#include "golden/bounds/number/number.h"
#include "golden/bounds/number/sum_bounds.h"
#include "weights/base/tensor.h"

namespace shardproof::bounds {

/// A tensor of real numbers, each known to within a radius: 0 for dumped numbers; for replayed ones
/// the uncertainty of their operands and operations. `likely` is the radius that holds except with
/// probability 2^-71 per number, and is never larger than `radius`. An infinite radius means that
/// nothing is known.
struct IntervalTensor {
  Shape shape;
  std::vector<double> center, radius, likely;

  IntervalTensor() = default;
  explicit IntervalTensor(Shape of);
  explicit IntervalTensor(const Tensor& exact);
  IntervalTensor(Array<double> exact);  // NOLINT(google-explicit-constructor): the same numbers
  std::size_t size() const { return center.size(); }
  Interval at(std::size_t i) const { return around(center[i], radius[i]); }
  Number number(std::size_t i) const { return {center[i], radius[i], likely[i]}; }
  /// Marks the number as unknown (infinite radius) if the center is NaN or the radius not finite.
  void set(std::size_t i, const Number& v) {
    const bool known = std::isfinite(v.worst) && !std::isnan(v.center);
    center[i] = v.center;
    radius[i] = v.worst;
    if (!known) radius[i] = kInfinity;
    likely[i] = known && v.likely <= v.worst ? v.likely : radius[i];
  }
  void set(std::size_t i, const FunctionValue& v) { set(i, Number{v.center, v.radius, v.radius}); }
  /// Adds `by` to both radii.
  void widen(std::size_t i, double by) { radius[i] += by, likely[i] += by; }

  /// Returns the numbers after rounding to `format`. Each radius includes the number's own
  /// rounding; it is 0 if the whole interval rounds to one value.
  IntervalTensor rounded(NumberFormat format) const;
  /// Returns a copy whose radius is the likely radius.
  IntervalTensor with_likely_radius() const;
};

/// Returns, element by element, the smallest number whose interval contains both intervals.
IntervalTensor hull(const IntervalTensor& a, const IntervalTensor& b);

/// Accumulates Σ a_k·b_k in twice f64's precision, with k in the order of the sum.
class IntervalSum {
 public:
  void add(double a, double b, double radius_of_a = 0.0, double radius_of_b = 0.0) {
    add({a, radius_of_a, radius_of_a}, {b, radius_of_b, radius_of_b});
  }
  void add(const Number& a, const Number& b);
  /// Returns center and radii of the sum under the declared arithmetic.
  Number value(const DeclaredArithmetic& declared, const Depth& depth = {}) const;
  Sum sum() const;

 private:
  double high_ = 0.0, low_ = 0.0;
  double size_ = 0.0;                  ///< Σ of the magnitudes of the products
  double worst_ = 0.0, likely_ = 0.0;  ///< effect of the factors' radii on the sum
  double least_ = 0.0, most_ = 0.0;    ///< smallest and largest prefix sum
  std::int64_t count_ = 0;
};

inline void IntervalSum::add(const Number& a, const Number& b) {
  const double product = a.center * b.center;
  const double of_product = std::fma(a.center, b.center, -product);
  const double sum = high_ + product;
  const double back = sum - high_;
  low_ += of_product + ((high_ - (sum - back)) + (product - back));
  high_ = sum;
  least_ = std::min(least_, sum);
  most_ = std::max(most_, sum);
  const double p = std::abs(a.center), q = std::abs(b.center);
  size_ += (p + a.worst) * (q + b.worst);
  worst_ += p * b.worst + q * a.worst + a.worst * b.worst;
  likely_ += p * b.likely + q * a.likely + a.likely * b.likely;
  ++count_;
}

}  // namespace shardproof::bounds
