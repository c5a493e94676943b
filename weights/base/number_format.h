#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardproof {

/// How numbers stand in files, on wires and in what other programs compute.
enum class NumberFormat : std::uint8_t {
  f64,
  f32,
  bf16,
  f16,
  f8_e4m3,
  f8_e5m2,
  int8,
  int32,
  int64
};

/// What a format is. A float has a sign, `exponent_bits` and `fraction_bits`; its exponents begin
/// at 1 - bias, where numbers are subnormal.
struct NumberFormatRow {
  NumberFormat format;
  std::string_view word;  ///< "bf16", as our messages and files have it
  std::string_view safetensors;
  int bytes;
  int exponent_bits;  ///< 0: whole numbers, two's complement
  int fraction_bits;
  bool has_infinity;  ///< otherwise of the largest exponent only the last fraction is no number

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  /// Returns u: a rounding to nearest changes a normal number x by at most u |x|.
  double unit() const;
  /// Returns the least positive number: what is below normal numbers is rounded to half of it.
  double least() const;
  /// Returns the largest finite number.
  double largest() const;
};

inline constexpr std::array<NumberFormatRow, 9> kNumberFormats{{
    {NumberFormat::f64, "f64", "F64", 8, 11, 52, true},
    {NumberFormat::f32, "f32", "F32", 4, 8, 23, true},
    {NumberFormat::bf16, "bf16", "BF16", 2, 8, 7, true},
    {NumberFormat::f16, "f16", "F16", 2, 5, 10, true},
    {NumberFormat::f8_e4m3, "f8_e4m3", "F8_E4M3", 1, 4, 3, false},
    {NumberFormat::f8_e5m2, "f8_e5m2", "F8_E5M2", 1, 5, 2, true},
    {NumberFormat::int8, "int8", "I8", 1, 0, 0, false},
    {NumberFormat::int32, "int32", "I32", 4, 0, 0, false},
    {NumberFormat::int64, "int64", "I64", 8, 0, 0, false},
}};

constexpr const NumberFormatRow& row_of(NumberFormat format) {
  return kNumberFormats[static_cast<std::size_t>(format)];
}

/// Returns the number that bits are in a format: of a float exactly, infinities and NaN included;
/// of int64 the nearest f64.
double number_of_bits(NumberFormat format, std::uint64_t bits);

}  // namespace shardproof
