#pragma once

#include <cmath>
#include <limits>

namespace shardproof::bounds {

/// What a number is rounded to, to nearest even, when it becomes a value. bf16 and f16: at once, or
/// to f32 first, as accumulators of f32 are. f16 has subnormals, and infinity from 65520 on.
enum class Format { f32, bf16, f16, f64 };

/// Whether values of the format are rounded once more than sums of f32 are.
inline bool narrow_storage(Format format) {
  return format == Format::bf16 || format == Format::f16;
}

/// Half the distance of neighbours around 1, so that |RN(x) − x| ≤ unit·|x| of a normal x; and half
/// the distance of neighbours around 0, which bounds it where x is subnormal.
double unit_of(Format format);
double least_of(Format format);

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What an interval's error is made of: nothing, the roundings of a sum in a known order, or those
/// of a formula.
enum class Kind { one_value, running, formula };

/// Where the real number lies whose rounding a value is.
struct Interval {
  double low = 0.0, high = 0.0;
};

/// All that is at most `radius` away from `center`, and a little more where a radius is not zero:
/// the ends are f64 and the interval holds its real ends. All numbers where the center is NaN or
/// the radius not finite, or where an infinite center has a radius; infinity without one is a
/// number.
inline Interval around(double center, double radius) {
  if (radius == 0 && !std::isnan(center)) return {center, center};
  if (!std::isfinite(center) || !std::isfinite(radius)) return {-kInfinity, kInfinity};
  // Two roundings: of the difference, and of what is taken off for the first.
  const double more = radius + 0x1p-51 * (std::abs(center) + radius);
  return {center - more, center + more};
}

/// The number of a format that is nearest to a number, of two the even one.
double nearest(double number, Format format);

/// The values that a number of the interval may be rounded to: RN(low) to RN(high). From −inf to
/// +inf where an end is NaN: then nothing is known.
Interval values(const Interval& of, Format format);

/// Whether a value is one of the format that lies between these ends, +0 and −0 being one. NaN lies
/// only between infinite ends, where nothing is known.
bool holds(const Interval& ends, Format format, double value);

/// The larger of two distances; infinite where one is no number.
inline double farther(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kInfinity;
  return a < b ? b : a;
}

/// How far a real number is from the numbers that may be rounded to a value: 0 of one of these,
/// infinite of a value that is no number.
double distance(double value, Format format, double number);

/// How tight a bound is: what is allowed over what happened, where a tensor's error is largest.
class Slack {
 public:
  /// A value within its bound.
  void see(const Interval& of, Format format, double value);
  /// At least 1; 0 where no value differs from the middle of its interval.
  double slack() const;

 private:
  double error_ = 0.0, bound_ = 0.0;
};

}  // namespace shardproof::bounds
