#include "oracle/numeric/exact_sum.h"

#include <bit>
#include <cmath>

#include "oracle/numeric/rounded.h"
#include "oracle/numeric/vectors.h"

namespace shardproof::oracle {

namespace {

constexpr int kUnit = -298;  // Sum counts units of 2^kUnit

/// Returns Σ x_k·y_k as an integer, for floats whose scales fit; Σ x_k if `y` is null.
Int128 integer_sum(std::span<const float> x, Scale of_x, const float* y, Scale of_y) {
  const double unit_x = power_of_two(-of_x.exponent), unit_y = power_of_two(-of_y.exponent);
  Int128 sum = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const auto a = static_cast<std::int64_t>(static_cast<double>(x[k]) * unit_x);
    const auto b = y == nullptr ? 1 : static_cast<std::int64_t>(static_cast<double>(y[k]) * unit_y);
    sum += static_cast<Int128>(a) * b;
  }
  return sum;
}

}  // namespace

void Sum::add(float a, float b) {
  const Parts x = parts_of(a);
  const Parts y = parts_of(b);
  const std::int64_t product = x.integer * y.integer;  // below 2^48
  if (product == 0) return;
  const auto shift = static_cast<unsigned>(x.exponent + y.exponent - kUnit);
  const auto addend = static_cast<Uint128>(static_cast<Int128>(product) << shift % 64);
  const std::uint64_t sign = product < 0 ? ~std::uint64_t{0} : 0;  // sign extension

  std::size_t w = shift / 64;
  Uint128 carry = Uint128{words_[w]} + static_cast<std::uint64_t>(addend);
  words_[w++] = static_cast<std::uint64_t>(carry);
  carry = Uint128{words_[w]} + static_cast<std::uint64_t>(addend >> 64) + (carry >> 64);
  words_[w++] = static_cast<std::uint64_t>(carry);
  // In higher words, adding 0 without a carry or -1 with a carry changes nothing.
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
  // The 64 bits from the leading one down, and whether any lower bit is set.
  const int zeros = std::countl_zero(magnitude[top]);
  const Uint128 pair = Uint128{magnitude[top]} << 64 | magnitude[top - 1];
  const auto leading = static_cast<std::uint64_t>(pair << zeros >> 64);
  bool sticky = static_cast<std::uint64_t>(pair << zeros) != 0;
  for (std::size_t w = 0; w + 1 < top; ++w) sticky = sticky || magnitude[w] != 0;
  return rounded(negative, leading, sticky, kUnit + 64 * static_cast<int>(top) - zeros);
}

float sum_of_products(std::span<const float> x, std::span<const float> y) {
  const Scale a = scale_of(x), b = scale_of(y);
  if (sum_fits(a, b, x.size()))
    return rounded(integer_sum(x, a, y.data(), b), a.exponent + b.exponent);
  Sum sum;
  for (std::size_t k = 0; k < x.size(); ++k) sum.add(x[k], y[k]);
  return sum.value();
}

float sum_of(std::span<const float> x) {
  const Scale a = scale_of(x);
  if (sum_fits(a, {0, 1}, x.size())) return rounded(integer_sum(x, a, nullptr, {}), a.exponent);
  Sum sum;
  for (float v : x) sum.add(v);
  return sum.value();
}

}  // namespace shardproof::oracle
