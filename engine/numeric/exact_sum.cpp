#include "engine/numeric/exact_sum.h"

#include <bit>
#include <cmath>

namespace shardproof {
namespace {

__extension__ using Wide = unsigned __int128;

/// |v| = mantissa · 2^exponent with a 24-bit integer mantissa.
struct Parts {
  std::uint64_t mantissa;
  int exponent;
  bool negative;
};

Parts parts(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const int biased = static_cast<int>((bits >> 23) & 0xFF);
  const std::uint32_t fraction = bits & 0x7FFFFF;
  if (biased == 0) return {fraction, -149, (bits >> 31) != 0};
  return {fraction | 0x800000U, biased - 150, (bits >> 31) != 0};
}

}  // namespace

void ExactSum::add_product(float a, float b) {
  const Parts pa = parts(a);
  const Parts pb = parts(b);
  const int position = pa.exponent + pb.exponent - kLowest;
  const Wide shifted = static_cast<Wide>(pa.mantissa * pb.mantissa) << (position % 32);
  auto* limb = limbs_.data() + position / 32;
  const std::int64_t sign = pa.negative != pb.negative ? -1 : 1;
  limb[0] += sign * static_cast<std::int64_t>(static_cast<std::uint32_t>(shifted));
  limb[1] += sign * static_cast<std::int64_t>(static_cast<std::uint32_t>(shifted >> 32));
  limb[2] += sign * static_cast<std::int64_t>(static_cast<std::uint32_t>(shifted >> 64));
}

double ExactSum::rounded64() const {
  // Carry into 32-bit digits; the top limb keeps the sign.
  std::array<std::int64_t, kLimbs> digits = limbs_;
  std::int64_t carry = 0;
  for (auto& digit : digits) {
    const std::int64_t total = digit + carry;
    digit = total & 0xFFFFFFFF;
    carry = total >> 32;
  }
  const bool negative = carry < 0;
  if (negative) {
    // The digits hold sum + 2^640: complement them to get |sum|.
    std::int64_t borrow = 1;
    for (auto& digit : digits) {
      const std::int64_t total = (digit ^ 0xFFFFFFFF) + borrow;
      digit = total & 0xFFFFFFFF;
      borrow = total >> 32;
    }
  }
  int top = kLimbs - 1;
  while (top >= 0 && digits[static_cast<std::size_t>(top)] == 0) --top;
  if (top < 0) return 0.0;

  // The three leading digits hold at least 65 bits from the first set one; lower bits are sticky.
  Wide lead = 0;
  for (int i = 0; i < 3; ++i) {
    const int at = top - i;
    lead = lead << 32 | static_cast<Wide>(at >= 0 ? digits[static_cast<std::size_t>(at)] : 0);
  }
  bool sticky = false;
  for (int i = 0; i < top - 2; ++i) sticky |= digits[static_cast<std::size_t>(i)] != 0;

  const auto high = static_cast<std::uint64_t>(lead >> 64);  // the top digit, not zero
  const int width = 64 + (64 - std::countl_zero(high));
  const int drop = width - 53;
  auto kept = static_cast<std::uint64_t>(lead >> drop);
  const Wide rest = lead & ((static_cast<Wide>(1) << drop) - 1);
  const Wide half = static_cast<Wide>(1) << (drop - 1);
  const bool up = rest > half || (rest == half && (sticky || (kept & 1) != 0));
  if (up) ++kept;
  const int exponent = kLowest + 32 * (top - 2) + drop;
  const double magnitude = std::ldexp(static_cast<double>(kept), exponent);
  return negative ? -magnitude : magnitude;
}

}  // namespace shardproof
