#include "golden/bounds/number/interval.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace shardproof::bounds {
namespace {

/// A 16-bit format.
struct Short {
  int digits;           ///< significand bits, the implicit one included
  double infinite;      ///< smallest number that is too large for the format
  double least_normal;  ///< below it all numbers are multiples of the least one
  double shift;         ///< smallest f64 with the spacing of those multiples
};
constexpr Short kBf16{8, 0x1p128, 0x1p-126, 0x1p-81};
constexpr Short kF16{11, 0x1p16, 0x1p-14, 0x1p28};

/// Rounds an f64 to the nearest number of a 16-bit format in one step; infinite beyond the largest.
/// Works on the f64's bits for speed: bounds do most of their rounding here.
double to_short(double v, const Short& format) {
  if (v == 0 || !std::isfinite(v)) return v;
  const double size = std::abs(v);
  double rounded = 0.0;
  if (size < format.least_normal) {
    rounded = (size + format.shift) - format.shift;
  } else {
    const int dropped = 53 - format.digits;
    const std::uint64_t unit = std::uint64_t{1} << dropped;
    auto bits = std::bit_cast<std::uint64_t>(size);
    bits += unit / 2 - 1 + ((bits >> dropped) & 1U);  // ties to even
    rounded = std::bit_cast<double>(bits & ~(unit - 1));
  }
  if (rounded >= format.infinite) rounded = kInfinity;
  return std::copysign(rounded, v);
}

double to_f32(double v) {
  auto rounded = static_cast<float>(v);
  // Prevents g++ 12 at -O2 from turning two such conversions side by side into an f64 copy.
  asm("" : "+m"(rounded));
  return static_cast<double>(rounded);
}

/// Hull of both roundings to a 16-bit format: direct, and through f32.
Interval both_ways(const Interval& of, const Short& format) {
  return {std::min(to_short(of.low, format), to_short(to_f32(of.low), format)),
          std::max(to_short(of.high, format), to_short(to_f32(of.high), format))};
}

}  // namespace

double nearest(double number, NumberFormat format) {
  switch (format) {
    case NumberFormat::f32:
      return to_f32(number);
    case NumberFormat::bf16:
      return to_short(number, kBf16);
    case NumberFormat::f16:
      return to_short(number, kF16);
    case NumberFormat::f64:
      return number;
    default:
      throw std::logic_error("no value is judged in this format");
  }
}

Interval values(const Interval& of, NumberFormat format) {
  if (std::isnan(of.low) || std::isnan(of.high)) return {-kInfinity, kInfinity};
  switch (format) {
    case NumberFormat::f32:
      return {to_f32(of.low), to_f32(of.high)};
    case NumberFormat::bf16:
      return both_ways(of, kBf16);
    case NumberFormat::f16:
      return both_ways(of, kF16);
    case NumberFormat::f64:
      return of;
    default:
      throw std::logic_error("no value is judged in this format");
  }
}

bool holds(const Interval& ends, NumberFormat format, double value) {
  if (std::isnan(value)) return ends.low == -kInfinity && ends.high == kInfinity;
  const Interval own = values({value, value}, format);
  return ends.low <= value && value <= ends.high && own.low == value && own.high == value;
}

double distance(double value, NumberFormat format, double number) {
  if (!std::isfinite(value) || !std::isfinite(number))
    return nearest(number, format) == value ? 0.0 : kInfinity;
  const double away = std::abs(value - number);
  return std::max(away - unit_of(format) * std::abs(value) - least_of(format), 0.0);
}

void Slack::see(const Interval& of, NumberFormat format, double value) {
  const double middle = 0.5 * (of.low + of.high);
  const double error = std::abs(value - middle);
  if (!(error > error_) || std::isinf(error)) return;
  error_ = error;
  // The value also differs from its unrounded number by half a unit in its last place.
  bound_ = 0.5 * (of.high - of.low) + unit_of(format) * std::abs(value) + least_of(format);
}

double Slack::slack() const { return error_ > 0 ? bound_ / error_ : 0.0; }

}  // namespace shardproof::bounds
