#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

namespace shardproof {

/// Half an ulp of 1 in f64.
inline constexpr double kUnitRoundoff64 = 0x1p-53;

/// Returns (float)RN64(s) of an exact sum s known only by |s − value| ≤ bound, if that decides it.
///
/// RN64 and the cast are monotone, and value ± bound, computed in f64, is RN64 of the true end of
/// the interval; so equal bits at both ends are the bits of every s between them. A bound of zero
/// means that `value` is exact. Undecided sums need ExactSum (docs/numerics.md).
inline std::optional<float> decide(double value, double bound) {
  if (bound == 0.0) return static_cast<float>(value == 0.0 ? 0.0 : value);
  const auto low = static_cast<float>(value - bound);
  const auto high = static_cast<float>(value + bound);
  if (std::bit_cast<std::uint32_t>(low) != std::bit_cast<std::uint32_t>(high)) return std::nullopt;
  return low;
}

/// A bound as stored with partial sums, to save memory: an f32 above it, hence valid too; zero only
/// if the bound is zero. Never NaN.
inline float stored_bound(double bound) {
  if (bound == 0.0) return 0.0F;
  return static_cast<float>(std::max(bound, 0x1p-126) * (1.0 + 0x1p-22));
}

/// decide() for n contiguous values, none of them -0; `exact(i)` supplies the rare undecided ones.
template <class Bound, class Exact>
void decide_each(const double* values, const Bound* bounds, std::int64_t n, float* out,
                 Exact&& exact) {
  constexpr std::int64_t kBlock = 128;
  float high[kBlock];
  for (std::int64_t done = 0; done < n; done += kBlock) {
    const std::int64_t m = std::min(kBlock, n - done);
    for (std::int64_t i = 0; i < m; ++i)
      out[done + i] = static_cast<float>(values[done + i] - static_cast<double>(bounds[done + i]));
    for (std::int64_t i = 0; i < m; ++i)
      high[i] = static_cast<float>(values[done + i] + static_cast<double>(bounds[done + i]));
    if (std::memcmp(out + done, high, static_cast<std::size_t>(m) * sizeof(float)) == 0) continue;
    for (std::int64_t i = 0; i < m; ++i)
      if (std::bit_cast<std::uint32_t>(out[done + i]) != std::bit_cast<std::uint32_t>(high[i]))
        out[done + i] = exact(done + i);
  }
}

/// A sum that tracks whether its own additions rounded (TwoSum: the error of an f64 addition is an
/// f64), and bounds their error together with the bounds of its addends.
class BoundedSum {
 public:
  void add(double value, double bound) {
    const double old = sum_;
    sum_ += value;
    const double virtual_value = sum_ - old;
    const double lost = (old - (sum_ - virtual_value)) + (value - virtual_value);
    bound_ += bound;
    if (lost != 0.0) bound_ += std::abs(sum_) * kUnitRoundoff64;
    ++count_;
  }
  double value() const { return sum_; }
  /// The factor covers the rounding of the bound's own additions.
  double bound() const { return bound_ * (1.0 + (count_ + 2.0) * 0x1p-50); }

 private:
  double sum_ = 0.0, bound_ = 0.0, count_ = 0.0;
};

/// A bound on |computed − exact| for a sum of n f64 operations (any order) over products that are
/// exact, where magnitude ≥ Σ|a_k·b_k| up to the rounding of its own computation. The two spare
/// operations and the factor cover γ_n = n·u/(1−n·u) and the rounding of norms for n < 2^30.
inline double sum_bound(double n, double magnitude) {
  return (n + 2.0) * kUnitRoundoff64 * magnitude * (1.0 + 0x1p-20);
}

}  // namespace shardproof
