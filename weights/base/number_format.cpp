#include "weights/base/number_format.h"

#include <bit>
#include <cmath>
#include <limits>

namespace shardproof {

double number_of_bits(NumberFormat format, std::uint64_t bits) {
  // The two that most files have, at the speed of a copy.
  if (format == NumberFormat::f32)
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  if (format == NumberFormat::f64) return std::bit_cast<double>(bits);
  const NumberFormatRow& row = row_of(format);
  const int width = 8 * row.bytes;
  if (row.exponent_bits == 0) {
    // The sign bit moves to the top, and back with its copies.
    const auto left = static_cast<std::int64_t>(bits << (64 - width));
    return static_cast<double>(left >> (64 - width));
  }
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << row.fraction_bits) - 1);
  const auto exponent =
      static_cast<int>((bits >> row.fraction_bits) & ((std::uint64_t{1} << row.exponent_bits) - 1));
  const double sign = (bits >> (width - 1) & 1U) != 0 ? -1.0 : 1.0;
  const std::uint64_t last_fraction = (std::uint64_t{1} << row.fraction_bits) - 1;
  if (exponent == (1 << row.exponent_bits) - 1) {
    if (row.has_infinity && fraction == 0) return sign * std::numeric_limits<double>::infinity();
    if (row.has_infinity || fraction == last_fraction)
      return std::numeric_limits<double>::quiet_NaN();
  }
  const std::uint64_t hidden = exponent == 0 ? 0 : std::uint64_t{1} << row.fraction_bits;
  return sign * std::ldexp(static_cast<double>(hidden | fraction),
                           (exponent == 0 ? 1 : exponent) - row.bias() - row.fraction_bits);
}

}  // namespace shardproof
