#pragma once

#include <cmath>
#include <limits>

#include "weights/base/number_format.h"

namespace shardproof::bounds {

/// Returns whether storing an f32 sum in this format rounds it once more.
inline bool narrow_storage(NumberFormat format) {
  return format == NumberFormat::bf16 || format == NumberFormat::f16;
}

inline double unit_of(NumberFormat format) { return row_of(format).unit; }
inline double least_of(NumberFormat format) { return row_of(format).least; }

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Source of an interval's error: none, roundings of a sum in a known order, or of a formula.
enum class Kind { one_value, running, formula };

/// Bounds of the real number that a value is rounded from.
struct Interval {
  double low = 0.0, high = 0.0;
};

/// Returns an interval that contains every number within `radius` of `center`, widened for f64
/// rounding if the radius is not 0. Returns all numbers if the center is NaN, the radius is not
/// finite, or the center is infinite with a non-zero radius; infinity with radius 0 is a number.
inline Interval around(double center, double radius) {
  if (radius == 0 && !std::isnan(center)) return {center, center};
  if (!std::isfinite(center) || !std::isfinite(radius)) return {-kInfinity, kInfinity};
  // Accounts for two roundings: of the difference, and of the subtrahend.
  const double more = radius + 0x1p-51 * (std::abs(center) + radius);
  return {center - more, center + more};
}

/// Returns the number of the format nearest to `number`, ties to even.
double nearest(double number, NumberFormat format);

/// Returns the values that numbers of the interval may round to: RN(low) to RN(high). Returns
/// (−inf, +inf) if an end is NaN: nothing is known.
Interval values(const Interval& of, NumberFormat format);

/// Returns whether `value` is a number of the format between the ends; +0 equals −0. NaN is
/// accepted only between infinite ends, where nothing is known.
bool holds(const Interval& ends, NumberFormat format, double value);

/// Returns the larger of two distances; infinite if one is NaN.
inline double farther(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kInfinity;
  return a < b ? b : a;
}

/// Returns the distance from a real number to the numbers that may round to `value`: 0 if it is one
/// of them, infinite if the value is NaN.
double distance(double value, NumberFormat format, double number);

/// Tightness of a bound: allowed over actual error, at a tensor's element of largest error.
class Slack {
 public:
  /// Records a value that is within its bound.
  void see(const Interval& of, NumberFormat format, double value);
  /// Returns the slack, at least 1; 0 if no value differs from the middle of its interval.
  double slack() const;

 private:
  double error_ = 0.0, bound_ = 0.0;
};

}  // namespace shardproof::bounds
