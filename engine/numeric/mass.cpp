#include "engine/numeric/mass.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace shardproof {
namespace {

__extension__ using Wide = unsigned __int128;

// Holds both sides of a comparison: 192 bits times fewer than 64.
constexpr int kBits = 256;
using Product = std::array<std::uint64_t, kBits / 64>;

template <std::size_t N>
Product times(const std::array<std::uint64_t, N>& number, std::uint64_t factor) {
  Product all{};
  Wide carry = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    carry += i < N ? static_cast<Wide>(number[i]) * factor : Wide{0};
    all[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  return all;
}

template <std::size_t N>
int bit_length(const std::array<std::uint64_t, N>& number) {
  for (std::size_t i = N; i-- > 0;)
    if (number[i] != 0)
      return static_cast<int>(64 * i) + static_cast<int>(std::bit_width(number[i]));
  return 0;
}

/// Shifts by fewer than kBits; no bit may be lost.
template <std::size_t N>
Product shifted(const std::array<std::uint64_t, N>& number, int by) {
  Product all{};
  const auto limbs = static_cast<std::size_t>(by / 64);
  const int bits = by % 64;
  for (std::size_t i = 0; i < N; ++i) {
    if (number[i] == 0) continue;
    const Wide wide = static_cast<Wide>(number[i]) << bits;
    all[i + limbs] |= static_cast<std::uint64_t>(wide);
    if (const auto high = static_cast<std::uint64_t>(wide >> 64); high != 0)
      all[i + limbs + 1] |= high;
  }
  return all;
}

bool less(const Product& a, const Product& b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

}  // namespace

void Mass::add_at(std::size_t bit, std::uint64_t value) {
  Wide carry = static_cast<Wide>(value) << (bit % 64);
  for (std::size_t i = bit / 64; i < kLimbs && carry != 0; ++i) {
    carry += limbs_[i];
    limbs_[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
}

void Mass::add(float v) {
  constexpr float kMost = 0x1p31F;
  if (!(v > 0.0F)) return;
  const auto bits = std::bit_cast<std::uint32_t>(std::min(v, kMost));
  const std::uint32_t biased = bits >> 23, fraction = bits & 0x7FFFFF;
  if (biased == 0)
    add_at(0, fraction);
  else
    add_at(biased - 1, fraction | 0x800000);
}

void Mass::add(std::span<const std::int32_t, kWords> words) {
  for (std::size_t w = 0; w < words.size(); ++w)
    add_at(16 * w, static_cast<std::uint32_t>(words[w]));
}

Mass::Words Mass::words() const {
  Words words{};
  for (std::size_t w = 0; w < words.size(); ++w)
    words[w] = static_cast<std::int32_t>(limbs_[w / 4] >> (16 * (w % 4)) & 0xFFFF);
  return words;
}

bool Mass::at_least(double p, const Mass& total) const {
  // p = integer·2^exponent, the exponent −52 at most: this·2^−exponent against integer·total.
  int exponent = 0;
  const auto integer = static_cast<std::uint64_t>(std::ldexp(std::frexp(p, &exponent), 53));
  const int up = 53 - exponent;
  const int length = bit_length(limbs_);
  if (length > 0 && length + up > kBits) return true;  // the other side is below 2^(192+53)
  const Product mine = length == 0 ? Product{} : shifted(limbs_, up);
  return !less(mine, times(total.limbs_, integer));
}

bool Mass::more_than(std::uint32_t r, const Mass& total) const {
  return less(times(total.limbs_, r), shifted(limbs_, 24));
}

std::int64_t Mass::falls_on(std::span<const float> e, std::uint32_t r, const Mass& total) {
  std::int64_t before = 0;
  for (const float v : e) {
    add(v);
    if (more_than(r, total)) return before;
    ++before;
  }
  return before;
}

}  // namespace shardproof
