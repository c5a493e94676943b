#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "golden/trace/read/dump.h"

namespace shardproof::dump {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are kept as files have them");

template <class T>
T element(const std::vector<std::byte>& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

double of_f16(std::uint16_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  const int exponent = bits >> 10 & 0x1F;
  const int fraction = bits & 0x3FF;
  if (exponent == 0x1F)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(0x400 + fraction, exponent - 25);
}

double of_bf16(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

double of_int64(std::int64_t value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (value < -kExact || value > kExact) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(value);
}

/// In the order of Encoding.
struct Row {
  std::string_view name;
  std::size_t bytes;
};
constexpr Row kRows[] = {{"f64", 8},  {"f32", 4},   {"f16", 2},  {"bf16", 2},
                         {"int8", 1}, {"int32", 4}, {"int64", 8}};

}  // namespace

std::string_view to_string(Encoding encoding) {
  return kRows[static_cast<std::size_t>(encoding)].name;
}

std::size_t bytes_of(Encoding encoding) { return kRows[static_cast<std::size_t>(encoding)].bytes; }

double StoredArray::at(std::size_t i) const {
  switch (encoding) {
    case Encoding::f64:
      return element<double>(bytes, i);
    case Encoding::f32:
      return static_cast<double>(element<float>(bytes, i));
    case Encoding::f16:
      return of_f16(element<std::uint16_t>(bytes, i));
    case Encoding::bf16:
      return of_bf16(element<std::uint16_t>(bytes, i));
    case Encoding::int8:
      return element<std::int8_t>(bytes, i);
    case Encoding::int32:
      return element<std::int32_t>(bytes, i);
    case Encoding::int64:
      return of_int64(element<std::int64_t>(bytes, i));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace shardproof::dump
