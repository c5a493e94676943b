#include "oracle/numeric/detail/natural.h"

#include <algorithm>

#include "oracle/numeric/rounded.h"

namespace shardproof::oracle {

using std::size_t;

void Natural::trim() {
  while (!digits_.empty() && digits_.back() == 0) digits_.pop_back();
}

void Natural::add(float v, int shift) {
  if (!(v > 0)) return;
  const Parts parts = parts_of(v);
  const int above = parts.exponent + 149 + shift;
  const auto place = static_cast<size_t>(above);
  // Adds digit by digit, with carry.
  auto rest = static_cast<std::uint64_t>(parts.integer) << (place % 16);
  size_t at = place / 16;
  if (digits_.size() < at) digits_.resize(at, 0);
  for (; rest > 0; rest >>= 16, ++at) {
    if (at == digits_.size()) digits_.push_back(0);
    rest += digits_[at];
    digits_[at] = static_cast<std::uint32_t>(rest & 0xFFFF);
  }
}

void Natural::add(const Natural& other) {
  digits_.resize(std::max(digits_.size(), other.digits_.size()) + 1, 0);
  std::uint32_t carry = 0;
  for (size_t i = 0; i < digits_.size(); ++i) {
    carry += digits_[i] + other.digit(i);
    digits_[i] = carry & 0xFFFF;
    carry >>= 16;
  }
  trim();
}

Natural Natural::times(std::uint64_t factor, int shift) const {
  // Schoolbook multiplication by each digit of the factor; shifts by whole digits, then by bits.
  const std::uint64_t bits = std::uint64_t{1} << (shift % 16);
  Natural product;
  product.digits_.assign(digits_.size() + static_cast<size_t>(shift / 16) + 6, 0);
  for (size_t f = 0; f < 4; ++f) {
    const std::uint64_t by = factor >> (16 * f) & 0xFFFF;
    std::uint64_t carry = 0;
    for (size_t i = 0; i < digits_.size() || carry > 0; ++i) {
      std::uint32_t& to = product.digits_[i + f];
      carry += to + by * digit(i);
      to = static_cast<std::uint32_t>(carry & 0xFFFF);
      carry >>= 16;
    }
  }
  std::uint64_t carry = 0;
  for (std::uint32_t& d : product.digits_) {
    carry += d * bits;
    d = static_cast<std::uint32_t>(carry & 0xFFFF);
    carry >>= 16;
  }
  product.digits_.insert(product.digits_.begin(), static_cast<size_t>(shift / 16), 0);
  product.trim();
  return product;
}

std::strong_ordering Natural::operator<=>(const Natural& other) const {
  if (digits_.size() != other.digits_.size()) return digits_.size() <=> other.digits_.size();
  for (size_t i = digits_.size(); i-- > 0;)
    if (digits_[i] != other.digits_[i]) return digits_[i] <=> other.digits_[i];
  return std::strong_ordering::equal;
}

}  // namespace shardproof::oracle
