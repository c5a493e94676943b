#include "oracle/field/detail/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardproof::oracle::field {

namespace {

__extension__ typedef unsigned __int128 Wide;

/// Returns 1/x modulo a prime p, 0 < x < p, by Euclid's algorithm, with r ≡ t·x modulo p
/// throughout.
std::uint64_t inverse_modulo(std::uint64_t x, std::uint64_t prime) {
  const auto p = static_cast<std::int64_t>(prime);
  std::int64_t r = p, next_r = static_cast<std::int64_t>(x);
  std::int64_t t = 0, next_t = 1;
  while (next_r != 0) {
    const std::int64_t quotient = r / next_r;
    const std::int64_t rest = r - quotient * next_r;
    r = next_r;
    next_r = rest;
    const std::int64_t after = t - quotient * next_t;
    t = next_t;
    next_t = after;
  }
  return static_cast<std::uint64_t>(t < 0 ? t + p : t);
}

}  // namespace

Arithmetic::Arithmetic(const FieldSetting& setting)
    : p_((std::uint64_t{1} << (setting.bits & 63)) - 1),
      lanes_(static_cast<std::size_t>(setting.lanes)) {
  constexpr std::array kBits{61, 31, 19, 17, 13, 7, 5, 3};
  if (std::find(kBits.begin(), kBits.end(), setting.bits) == kBits.end() || setting.lanes < 1 ||
      setting.lanes > 3)
    throw Error("field_setting",
                fmt::format("bits={} lanes={}: 2^bits - 1 must be a known prime, and lanes 1 to 3",
                            setting.bits, setting.lanes));
}

Number Arithmetic::integer(std::int64_t i) const {
  const auto p = static_cast<std::int64_t>(p_);
  Number n;
  for (std::size_t j = 0; j < lanes_; ++j) n.lane[j] = static_cast<std::uint64_t>((i % p + p) % p);
  return n;
}

Number Arithmetic::add(const Number& x, const Number& y) const {
  Number n;
  for (std::size_t j = 0; j < lanes_; ++j) n.lane[j] = (x.lane[j] + y.lane[j]) % p_;
  return n;
}

Number Arithmetic::subtract(const Number& x, const Number& y) const {
  Number n;
  for (std::size_t j = 0; j < lanes_; ++j) n.lane[j] = (x.lane[j] + (p_ - y.lane[j])) % p_;
  return n;
}

Number Arithmetic::multiply(const Number& x, const Number& y) const {
  Number n;
  for (std::size_t j = 0; j < lanes_; ++j)
    n.lane[j] = static_cast<std::uint64_t>(Wide{x.lane[j]} * y.lane[j] % p_);
  return n;
}

std::optional<std::size_t> Arithmetic::zero_lane(const Number& x) const {
  for (std::size_t j = 0; j < lanes_; ++j)
    if (x.lane[j] == 0) return j;
  return std::nullopt;
}

Number Arithmetic::inverse(const Number& x) const {
  Number n;
  for (std::size_t j = 0; j < lanes_; ++j) n.lane[j] = inverse_modulo(x.lane[j], p_);
  return n;
}

Number Arithmetic::dot(const Number* x, const Number* y, std::size_t n) const {
  // A product is below 2^122, so 32 of them fit 128 bits. The halves of such sums are accumulated
  // separately, so that each sum needs one reduction. Unused lanes add zeros.
  constexpr std::size_t kBlock = 32;
  std::array<Wide, 3> low{}, high{};
  for (std::size_t start = 0; start < n; start += kBlock) {
    Wide sum0 = 0, sum1 = 0, sum2 = 0;
    const std::size_t end = std::min(n, start + kBlock);
    for (std::size_t i = start; i < end; ++i) {
      sum0 += Wide{x[i].lane[0]} * y[i].lane[0];
      sum1 += Wide{x[i].lane[1]} * y[i].lane[1];
      sum2 += Wide{x[i].lane[2]} * y[i].lane[2];
    }
    const std::array<Wide, 3> sums{sum0, sum1, sum2};
    for (std::size_t j = 0; j < 3; ++j) {
      low[j] += static_cast<std::uint64_t>(sums[j]);
      high[j] += sums[j] >> 64;
    }
  }
  const Wide two64 = (Wide{1} << 64) % p_;
  Number total;
  for (std::size_t j = 0; j < lanes_; ++j)
    total.lane[j] = static_cast<std::uint64_t>((high[j] % p_ * two64 + low[j]) % p_);
  return total;
}

}  // namespace shardproof::oracle::field
