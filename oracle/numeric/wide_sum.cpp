#include "oracle/numeric/wide_sum.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "oracle/numeric/rounded.h"

namespace shardproof::oracle {
namespace {

constexpr int kSmallest = -2148;  // exponent of the last bit: twice that of the smallest f64

struct Factor {
  std::uint64_t integer;  // below 2^53
  int exponent;           // from -1074
};

Factor factor_of(double v) {
  const auto bits = std::bit_cast<std::uint64_t>(v);
  const int field = static_cast<int>(bits >> 52 & 0x7ff);
  const std::uint64_t fraction = bits & 0xfffffffffffffU;
  if (field == 0) return {fraction, -1074};
  return {fraction | std::uint64_t{1} << 52, field - 1075};
}

}  // namespace

void WideSum::add(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) {
    finite_ = false;
    return;
  }
  const Factor x = factor_of(a), y = factor_of(b);
  const Uint128 product = Uint128{x.integer} * y.integer;
  if (product == 0) return;
  const auto shift = static_cast<std::size_t>(x.exponent + y.exponent - kSmallest);
  const std::size_t first = shift / 64, bits = shift % 64;
  const auto low = static_cast<std::uint64_t>(product),
             high = static_cast<std::uint64_t>(product >> 64);
  const std::array<std::uint64_t, 3> parts{low << bits,
                                           bits == 0 ? high : (high << bits) | (low >> (64 - bits)),
                                           bits == 0 ? 0 : high >> (64 - bits)};
  const bool minus = std::signbit(a) != std::signbit(b);
  std::uint64_t carry = 0;
  for (std::size_t i = first; i < words_.size(); ++i) {
    const std::uint64_t part = i - first < parts.size() ? parts[i - first] : 0;
    if (i - first >= parts.size() && carry == 0) break;
    const Uint128 next =
        minus ? Uint128{words_[i]} - part - carry : Uint128{words_[i]} + part + carry;
    words_[i] = static_cast<std::uint64_t>(next);
    carry = static_cast<std::uint64_t>(next >> 64) != 0 ? 1 : 0;
  }
}

double WideSum::value() const {
  if (!finite_) return std::numeric_limits<double>::quiet_NaN();
  std::array<std::uint64_t, 70> words = words_;
  const bool minus = words.back() >> 63 != 0;
  if (minus) {
    bool carry = true;
    for (std::uint64_t& word : words) {
      word = ~word + (carry ? 1 : 0);
      carry = carry && word == 0;
    }
  }
  std::size_t top = words.size();
  while (top > 0 && words[top - 1] == 0) --top;
  if (top == 0) return 0.0;
  const int leading = std::countl_zero(words[top - 1]);
  const int last =
      static_cast<int>(top) * 64 - leading - 64 + kSmallest;  // exponent of 64 bits' last
  std::uint64_t integer = words[top - 1] << leading;
  bool sticky = false;
  if (top > 1) {
    if (leading > 0) integer |= words[top - 2] >> (64 - leading);
    sticky = leading > 0 ? (words[top - 2] << leading) != 0 : words[top - 2] != 0;
    for (std::size_t i = 0; i + 2 < top; ++i) sticky = sticky || words[i] != 0;
  }
  // 64 bits round to the f64's own number of bits: 53, fewer below the smallest normal number.
  const int exponent = last + 63;  // of the leading bit
  int drop = 11;
  if (exponent < -1022) drop += -1022 - exponent;
  if (drop > 64) return minus ? -0.0 : 0.0;
  std::uint64_t kept = drop == 64 ? 0 : integer >> drop;
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  const std::uint64_t rest = drop == 64 ? integer : integer & ((half << 1) - 1);
  if (rest > half || (rest == half && (sticky || (kept & 1) != 0))) ++kept;
  const double value = std::ldexp(static_cast<double>(kept), last + drop);
  return minus ? -value : value;
}

}  // namespace shardproof::oracle
