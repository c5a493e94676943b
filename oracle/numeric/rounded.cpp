#include "oracle/numeric/rounded.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "weights/base/error.h"

namespace shardproof::oracle {

namespace {

constexpr int kLowest = -149;  // the exponent of the smallest f32

}  // namespace

Parts parts_of(float v) {
  if (!std::isfinite(v))
    throw Error("oracle_finite", fmt::format("a sum has the term {}, which is not finite", v));
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(v);
  const int biased = static_cast<int>(bits >> 23 & 0xff);
  const std::int64_t fraction = bits & 0x7fffff;
  const std::int64_t magnitude = biased == 0 ? fraction : fraction | 1 << 23;
  return {v < 0 ? -magnitude : magnitude, std::max(biased, 1) + kLowest - 1};
}

float rounded(bool negative, std::uint64_t integer, bool sticky, int exponent) {
  const double nearest = static_cast<double>(sticky ? integer | 1 : integer);
  const float magnitude = static_cast<float>(nearest * power_of_two(exponent));
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

}  // namespace shardproof::oracle
