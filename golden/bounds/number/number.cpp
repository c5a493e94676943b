#include "golden/bounds/number/number.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardproof::bounds {
namespace {

/// Unit of the f64 operations that compute centers and radii here.
constexpr double kOwn = 0x1p-53;
/// exp, erf and tanh of the C library are within 4 ulp (docs/spec.md section 1.4 counts 8).
constexpr double kOwnFunction = 8 * kOwn;

/// Absolute error of an operation whose result is subnormal or flushed to zero.
double least_of_operations(const DeclaredArithmetic& by) {
  return by.operations.unit >= 0x1p-30 ? 0x1p-126 : 0x1p-1000;
}

/// Returns the radius around `center` that covers the interval.
double radius_of(double center, const Interval& of) {
  if (!std::isfinite(of.low) || !std::isfinite(of.high)) return kInfinity;
  return std::max({of.high - center, center - of.low, 0.0});
}

}  // namespace

Number hull(const Number& a, const Number& b) {
  if (a.center == b.center && a.worst == 0 && b.worst == 0) return a;  // also for infinity
  const Interval x = a.interval(), y = b.interval();
  const Interval all{std::min(x.low, y.low), std::max(x.high, y.high)};
  const double center = 0.5 * (all.low + all.high);
  if (!std::isfinite(center)) return {a.center, kInfinity, kInfinity};
  const Interval p = a.likely_interval(), q = b.likely_interval();
  return {center, radius_of(center, all),
          radius_of(center, {std::min(p.low, q.low), std::max(p.high, q.high)})};
}

Number stored(const Number& x, NumberFormat format) {
  if (x.worst == 0 && std::isinf(x.center)) return x;
  if (!std::isfinite(x.center) || !std::isfinite(x.worst)) return {x.center, kInfinity, kInfinity};
  const double center = nearest(x.center, format);
  const Interval ends = values(x.interval(), format);
  if (!std::isfinite(center)) {
    const double radius = ends.low == ends.high ? 0.0 : kInfinity;
    return {center, radius, radius};
  }
  return {center, radius_of(center, ends), radius_of(center, values(x.likely_interval(), format))};
}

Number as_value(Number sum, const DeclaredArithmetic& by) {
  const double unit = std::max(unit_of(by.sums), unit_of(by.unstored()));
  const double own = unit * std::abs(sum.center) + least_of_operations(by);
  sum.worst += own, sum.likely += own;
  return sum;
}

Operations Operations::of_values(DeclaredArithmetic declared) {
  declared.operations.unit = std::max(declared.operations.unit, unit_of(declared.unstored()));
  return Operations(declared);
}

Operations::Operations(const DeclaredArithmetic& declared)
    : unit_(declared.operations.unit + kOwn),
      least_(least_of_operations(declared)),
      operation_unit_(declared.operations.unit),
      ulp_(declared.ulp) {}

Number Operations::rounded(double center, double error_worst, double error_likely) const {
  const auto with = [&](double error) {
    return error + unit_ * (std::abs(center) + error) + least_;
  };
  return {center, with(error_worst), with(error_likely)};
}

Number Operations::constant(double v) const {
  return {v, unit_ * std::abs(v), unit_ * std::abs(v)};
}

Number Operations::plus(const Number& a, const Number& b) const {
  const double center = a.center + b.center;
  if (std::isinf(center) && std::isfinite(a.worst + b.worst)) return {center, 0.0, 0.0};
  return rounded(a.center + b.center, a.worst + b.worst, a.likely + b.likely);
}

Number Operations::minus(const Number& a, const Number& b) const {
  return plus(a, {-b.center, b.worst, b.likely});
}

Number Operations::times(const Number& a, const Number& b) const {
  // Nothing rounds 0 times a number.
  for (const auto& [zero, other] : {std::pair{&a, &b}, std::pair{&b, &a}})
    if (zero->center == 0 && zero->worst == 0 && std::isfinite(other->center) &&
        std::isfinite(other->worst))
      return {0.0, 0.0, 0.0};
  const auto error = [&](double of_a, double of_b) {
    return std::abs(a.center) * of_b + std::abs(b.center) * of_a + of_a * of_b;
  };
  return rounded(a.center * b.center, error(a.worst, b.worst), error(a.likely, b.likely));
}

Number Operations::over(const Number& a, const Number& b) const {
  const double q = a.center / b.center;
  const auto error = [&](double of_a, double of_b) {
    const double room = std::abs(b.center) - of_b;
    return room > 0 ? (of_a + std::abs(q) * of_b) / room : kInfinity;
  };
  return rounded(q, error(a.worst, b.worst), error(a.likely, b.likely));
}

template <class Slope>
Number Operations::function(double center, const Number& x, double ulp, Slope&& slope) const {
  // One ulp counts as twice the unit.
  const double of_function = (2 * ulp * operation_unit_ + kOwnFunction) * std::abs(center) + least_;
  const auto error = [&](double radius) {
    return std::isfinite(radius) ? slope(radius) * radius + of_function : kInfinity;
  };
  return {center, error(x.worst), error(x.likely)};
}

Number Operations::exp(const Number& x) const {
  const double e = std::exp(x.center);
  return function(e, x, ulp_.exp, [&](double r) { return std::exp(x.center + r); });
}

namespace {

/// Returns the smallest magnitude in [x−r, x+r].
double innermost(double x, double r) { return std::max(std::abs(x) - r, 0.0); }

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

Number Operations::erf(const Number& x) const {
  return function(std::erf(x.center), x, ulp_.erf, [&](double r) {
    const double t = innermost(x.center, r);
    return 1.1283791670955128 * std::exp(-t * t);
  });
}

Number Operations::tanh(const Number& x) const {
  return function(std::tanh(x.center), x, ulp_.tanh, [&](double r) {
    const double t = std::tanh(innermost(x.center, r));
    return 1 - t * t;
  });
}

Number Operations::sigmoid(const Number& x) const {
  return function(sigmoid_of(x.center), x, ulp_.sigmoid, [&](double r) {
    const double s = sigmoid_of(innermost(x.center, r));
    return s * (1 - s);
  });
}

Number Operations::rsqrt(const Number& x) const {
  const double y = 1 / std::sqrt(x.center);
  return function(y, x, ulp_.rsqrt, [&](double r) {
    const double least = x.center - r;
    return least > 0 ? 0.5 / (least * std::sqrt(least)) : kInfinity;
  });
}

}  // namespace shardproof::bounds
