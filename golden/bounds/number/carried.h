#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "golden/bounds/number/declared.h"
#include "golden/bounds/number/number.h"
#include "golden/bounds/number/sum_bounds.h"
#include "weights/base/tensor.h"

namespace shardproof::bounds {

/// Real numbers known to within a radius each: dumped ones with none, replayed ones with what
/// their own operands and operations leave open. `likely` is the radius that holds but for a
/// probability of 2^-71 a number; it is never larger. An infinite radius: nothing is known.
struct Carried {
  Shape shape;
  std::vector<double> center, radius, likely;

  Carried() = default;
  explicit Carried(Shape of);
  explicit Carried(const Tensor& exact);
  Carried(Array<double> exact);  // NOLINT(google-explicit-constructor): the same numbers
  std::size_t size() const { return center.size(); }
  Interval at(std::size_t i) const { return around(center[i], radius[i]); }
  Number number(std::size_t i) const { return {center[i], radius[i], likely[i]}; }
  /// What is no number, or is known to within none, is unknown.
  void set(std::size_t i, const Number& v) {
    const bool known = std::isfinite(v.worst) && !std::isnan(v.center);
    center[i] = v.center;
    radius[i] = known ? v.worst : kInfinity;
    likely[i] = known && v.likely <= v.worst ? v.likely : radius[i];
  }
  void set(std::size_t i, const Evaluated& v) { set(i, Number{v.center, v.radius, v.radius}); }
  /// What is left open grows by as much.
  void widen(std::size_t i, double by) { radius[i] += by, likely[i] += by; }

  /// As values of a format: each number's own rounding is part of it, which leaves one number where
  /// the interval rounds to one.
  Carried rounded(Format format) const;
  /// The same numbers with the likely radius alone.
  Carried with_likely_radius() const;
};

/// All numbers of both, element by element, and all between them.
Carried hull(const Carried& a, const Carried& b);

/// Σ a_k·b_k while it is added up, in twice f64's digits, k in the order of the sum.
class CarriedSum {
 public:
  void add(double a, double b, double radius_of_a = 0.0, double radius_of_b = 0.0) {
    add({a, radius_of_a, radius_of_a}, {b, radius_of_b, radius_of_b});
  }
  void add(const Number& a, const Number& b);
  /// Of the sum of an evaluation as declared: its center and radii.
  Number value(const Declared& declared, const Depth& depth = {}) const;
  Sum sum() const;

 private:
  double high_ = 0.0, low_ = 0.0;
  double size_ = 0.0;                  ///< Σ of the products' sizes
  double worst_ = 0.0, likely_ = 0.0;  ///< what the factors' radii make of the sum
  double least_ = 0.0, most_ = 0.0;    ///< of the prefix sums
  std::int64_t count_ = 0;
};

inline void CarriedSum::add(const Number& a, const Number& b) {
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
