#include "oracle/exact_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "weights/error.h"

namespace shardproof::oracle {

namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

constexpr int kUnit = -298;    // Sum counts units of 2^kUnit
constexpr int kTooWide = 63;   // of Vectors::Scale::bits
constexpr int kLowest = -149;  // the exponent of the smallest f32

/// A finite f32 as an integer times a power of two: |integer| < 2^24, exponent >= -149.
struct Parts {
  std::int64_t integer;
  int exponent;
};

Parts parts_of(float v) {
  if (!std::isfinite(v))
    throw Error("oracle_finite", fmt::format("a sum has the term {}, which is not finite", v));
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(v);
  const int biased = static_cast<int>(bits >> 23 & 0xff);
  const std::int64_t fraction = bits & 0x7fffff;
  const std::int64_t magnitude = biased == 0 ? fraction : fraction | 1 << 23;
  return {v < 0 ? -magnitude : magnitude, std::max(biased, 1) + kLowest - 1};
}

/// (float) RN64(±integer·2^exponent), where `sticky` says that the integer had more bits, all below
/// its last one. The cast from 64 bits to f64 rounds to nearest even and cannot be off the sticky
/// bit, because an integer with dropped bits has its top bit set: 11 bits lie below the rounding.
float rounded(bool negative, std::uint64_t integer, bool sticky, int exponent) {
  const double nearest = static_cast<double>(sticky ? integer | 1 : integer);
  const float magnitude = static_cast<float>(std::ldexp(nearest, exponent));
  return negative ? -magnitude : magnitude;
}

float rounded(Int128 sum, int exponent) {
  const bool negative = sum < 0;
  const Uint128 magnitude = negative ? -static_cast<Uint128>(sum) : static_cast<Uint128>(sum);
  const auto high = static_cast<std::uint64_t>(magnitude >> 64);
  const int drop = 64 - std::countl_zero(high);
  const auto top = static_cast<std::uint64_t>(magnitude >> drop);
  const bool sticky = (magnitude & ((Uint128{1} << drop) - 1)) != 0;
  return rounded(negative, top, sticky, exponent + drop);
}

int bit_length(std::size_t n) { return static_cast<int>(std::bit_width(n)); }

}  // namespace

void Sum::add(float a, float b) {
  const Parts x = parts_of(a);
  const Parts y = parts_of(b);
  const std::int64_t product = x.integer * y.integer;  // below 2^48
  if (product == 0) return;
  const auto shift = static_cast<unsigned>(x.exponent + y.exponent - kUnit);
  const auto addend = static_cast<Uint128>(static_cast<Int128>(product) << shift % 64);
  const std::uint64_t sign = product < 0 ? ~std::uint64_t{0} : 0;  // of every word above

  std::size_t w = shift / 64;
  Uint128 carry = Uint128{words_[w]} + static_cast<std::uint64_t>(addend);
  words_[w++] = static_cast<std::uint64_t>(carry);
  carry = Uint128{words_[w]} + static_cast<std::uint64_t>(addend >> 64) + (carry >> 64);
  words_[w++] = static_cast<std::uint64_t>(carry);
  // Further up, +0 without a carry and -1 with one change nothing.
  const unsigned idle = sign == 0 ? 0 : 1;
  for (; w < words_.size() && static_cast<unsigned>(carry >> 64) != idle; ++w) {
    carry = Uint128{words_[w]} + sign + (carry >> 64);
    words_[w] = static_cast<std::uint64_t>(carry);
  }
}

float Sum::value() const {
  std::array<std::uint64_t, 10> magnitude = words_;
  const bool negative = (words_.back() >> 63) != 0;
  if (negative) {  // two's complement: invert, add one
    bool carry = true;
    for (std::uint64_t& word : magnitude) {
      word = ~word + (carry ? 1 : 0);
      carry = carry && word == 0;
    }
  }
  std::size_t top = magnitude.size() - 1;
  while (top > 0 && magnitude[top] == 0) --top;
  if (top == 0) return rounded(negative, magnitude[0], false, kUnit);
  // The 64 bits from the leading one down, and whether anything lies below them.
  const int zeros = std::countl_zero(magnitude[top]);
  const Uint128 pair = Uint128{magnitude[top]} << 64 | magnitude[top - 1];
  const auto leading = static_cast<std::uint64_t>(pair << zeros >> 64);
  bool sticky = static_cast<std::uint64_t>(pair << zeros) != 0;
  for (std::size_t w = 0; w + 1 < top; ++w) sticky = sticky || magnitude[w] != 0;
  return rounded(negative, leading, sticky, kUnit + 64 * static_cast<int>(top) - zeros);
}

float sum_of_products(std::span<const float> x, std::span<const float> y) {
  Sum sum;
  for (std::size_t k = 0; k < x.size(); ++k) sum.add(x[k], y[k]);
  return sum.value();
}

float sum_of(std::span<const float> x) {
  Sum sum;
  for (float v : x) sum.add(v);
  return sum.value();
}

void Vectors::align() {
  integers_.resize(values_.size());
  scales_.resize(count_);
  for (std::size_t i = 0; i < count_; ++i) {
    const std::span<const float> vector{values_.data() + i * length_, length_};
    int lowest = std::numeric_limits<int>::max();   // the place of the lowest bit set, and past the
    int highest = std::numeric_limits<int>::min();  // highest, over all elements
    for (float v : vector) {
      const Parts p = parts_of(v);
      if (p.integer == 0) continue;
      const auto magnitude = static_cast<std::uint64_t>(std::abs(p.integer));
      lowest = std::min(lowest, p.exponent + std::countr_zero(magnitude));
      highest = std::max(highest, p.exponent + bit_length(magnitude));
    }
    if (lowest > highest) continue;  // all zero: integers 0 of no bits
    scales_[i] = {lowest, std::min(highest - lowest, kTooWide)};
    if (scales_[i].bits == kTooWide) continue;
    for (std::size_t k = 0; k < length_; ++k) {
      const Parts p = parts_of(vector[k]);
      if (p.integer == 0) continue;  // `lowest` may be far from the exponent of a zero
      const int shift = p.exponent - lowest;
      integers_[i * length_ + k] = shift >= 0 ? p.integer * (std::int64_t{1} << shift)
                                              : p.integer / (std::int64_t{1} << -shift);
    }
  }
}

std::optional<float> fixed_point_dot(const Vectors& rows, std::size_t i, const Vectors& columns,
                                     std::size_t j) {
  const Vectors::Scale a = rows.scales_[i];
  const Vectors::Scale b = columns.scales_[j];
  const std::size_t n = rows.length_;
  if (a.bits == kTooWide || b.bits == kTooWide || a.bits + b.bits + bit_length(n) > 127)
    return std::nullopt;
  const std::int64_t* x = rows.integers_.data() + i * n;
  const std::int64_t* y = columns.integers_.data() + j * n;
  Int128 sum = 0;
  for (std::size_t k = 0; k < n; ++k) sum += static_cast<Int128>(x[k]) * y[k];
  return rounded(sum, a.exponent + b.exponent);
}

float wide_dot(const Vectors& rows, std::size_t i, const Vectors& columns, std::size_t j) {
  const std::size_t n = rows.length_;
  return sum_of_products({rows.values_.data() + i * n, n}, {columns.values_.data() + j * n, n});
}

std::vector<float> contract(const Vectors& rows, const Vectors& columns) {
  if (rows.length() != columns.length())
    throw Error("oracle_length",
                fmt::format("a contraction of {} terms with {}", rows.length(), columns.length()));
  std::vector<float> out(rows.count() * columns.count());
  for (std::size_t j = 0; j < columns.count(); ++j) {  // a column stays near while rows pass
    for (std::size_t i = 0; i < rows.count(); ++i) {
      const std::optional<float> sum = fixed_point_dot(rows, i, columns, j);
      out[i * columns.count() + j] = sum ? *sum : wide_dot(rows, i, columns, j);
    }
  }
  return out;
}

}  // namespace shardproof::oracle
