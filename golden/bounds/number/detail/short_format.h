#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "weights/base/number_format.h"

namespace shardproof::bounds {

/// A binary format with fewer digits than f64.
struct ShortFormat {
  int digits;           ///< significand bits, the implicit one included
  double infinite;      ///< smallest number that is too large for the format
  double least_normal;  ///< below it all numbers are multiples of the least one
  double shift;         ///< smallest f64 with the spacing of those multiples
};
inline constexpr ShortFormat kShortF32{24, 0x1p128, 0x1p-126, 0x1p-97};
inline constexpr ShortFormat kShortBf16{8, 0x1p128, 0x1p-126, 0x1p-81};
inline constexpr ShortFormat kShortF16{11, 0x1p16, 0x1p-14, 0x1p28};

/// Returns what rounding an f64 to the format needs; of f64 nullptr. Throws std::logic_error if no
/// value is judged in the format.
const ShortFormat* short_format(NumberFormat format);

/// The type of the bits of T, which is a number or a vector of numbers side by side.
template <class T>
struct BitsOf;
template <>
struct BitsOf<double> {
  using type = std::uint64_t;
};

inline constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63U;

/// Returns the number, or a vector of it.
template <class T>
T all_of(double number) {
  return T{} + number;
}
template <class T>
T size_of(T v) {
  using Bits = typename BitsOf<T>::type;
  return std::bit_cast<T>(std::bit_cast<Bits>(v) & ~kSignBit);
}

/// Returns the number of the format nearest to v, ties to even; infinite beyond the largest. By its
/// bits, without branches and without a conversion to float: g++ 12 takes two neighbouring
/// conversions to float and back for copies.
template <class T>
T to_short(T v, const ShortFormat& format) {
  using Bits = typename BitsOf<T>::type;
  const T infinite = all_of<T>(std::numeric_limits<double>::infinity());
  const T size = size_of(v), shift = all_of<T>(format.shift);
  const T subnormal = (size + shift) - shift;
  const int dropped = 53 - format.digits;
  const std::uint64_t unit = std::uint64_t{1} << dropped;
  const auto bits = std::bit_cast<Bits>(size);
  const Bits up = bits + (unit / 2 - 1) + ((bits >> dropped) & std::uint64_t{1});  // ties to even
  const T normal = std::bit_cast<T>(up & ~(unit - 1));
  const T rounded = size < all_of<T>(format.least_normal) ? subnormal : normal;
  const T ended = rounded >= all_of<T>(format.infinite) ? infinite : rounded;
  const T with_sign =
      std::bit_cast<T>(std::bit_cast<Bits>(ended) | (std::bit_cast<Bits>(v) & kSignBit));
  return size < infinite ? with_sign : v;
}

/// Returns the ends of the numbers that an interval with the ends `low` and `high` may round to:
/// directly, or in f32 first. Rounding keeps order, so the lower of both is that of the lower end.
template <class T>
T low_of_short(T low, const ShortFormat& format) {
  const T of_f32 = to_short(low, kShortF32);
  return to_short(of_f32 < low ? of_f32 : low, format);
}
template <class T>
T high_of_short(T high, const ShortFormat& format) {
  const T of_f32 = to_short(high, kShortF32);
  return to_short(of_f32 > high ? of_f32 : high, format);
}

}  // namespace shardproof::bounds
