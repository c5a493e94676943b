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

/// A format: a float's exponents begin at 1 - bias, where its numbers are subnormal.
struct NumberFormatRow {
  NumberFormat format;
  std::string_view word, safetensors;  ///< "bf16", "BF16": ours, and that of safetensors
  int bytes;
  int exponent_bits;  ///< 0: whole numbers, two's complement
  int fraction_bits;
  bool has_infinity;  ///< otherwise of the largest exponent only the last fraction is no number
  /// Half the spacing around 1 and around 0: a rounding changes x by at most unit·|x|, or least if
  /// x is subnormal. 0 for whole numbers, and least for f64, which no product of f32 reaches.
  double unit, least;
  double largest;  ///< of the finite numbers

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

inline constexpr std::array<NumberFormatRow, 9> kNumberFormats{{
    {NumberFormat::f64, "f64", "F64", 8, 11, 52, true, 0x1p-53, 0.0, 0x1.fffffffffffffp1023},
    {NumberFormat::f32, "f32", "F32", 4, 8, 23, true, 0x1p-24, 0x1p-150, 0x1.fffffep127},
    {NumberFormat::bf16, "bf16", "BF16", 2, 8, 7, true, 0x1p-8, 0x1p-134, 0x1.fep127},
    {NumberFormat::f16, "f16", "F16", 2, 5, 10, true, 0x1p-11, 0x1p-25, 65504.0},
    {NumberFormat::f8_e4m3, "f8_e4m3", "F8_E4M3", 1, 4, 3, false, 0x1p-4, 0x1p-10, 448.0},
    {NumberFormat::f8_e5m2, "f8_e5m2", "F8_E5M2", 1, 5, 2, true, 0x1p-3, 0x1p-17, 57344.0},
    {NumberFormat::int8, "int8", "I8", 1, 0, 0, false, 0.0, 0.0, 127.0},
    {NumberFormat::int32, "int32", "I32", 4, 0, 0, false, 0.0, 0.0, 2147483647.0},
    {NumberFormat::int64, "int64", "I64", 8, 0, 0, false, 0.0, 0.0, 0x1p63},
}};

constexpr const NumberFormatRow& row_of(NumberFormat format) {
  return kNumberFormats[static_cast<std::size_t>(format)];
}

constexpr std::string_view to_string(NumberFormat format) { return row_of(format).word; }
constexpr int bytes_of(NumberFormat format) { return row_of(format).bytes; }

/// Returns the number that bits are in a format: of a float exactly, infinities and NaN included;
/// of int64 the nearest f64.
double number_of_bits(NumberFormat format, std::uint64_t bits);

}  // namespace shardproof
