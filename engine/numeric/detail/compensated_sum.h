#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "engine/numeric/detail/rounding_test.h"
#include "engine/numeric/exact_sum.h"

namespace shardproof {

/// A sum of products of f32 pairs in about twice the precision of f64 (Sum2 of Ogita, Rump and
/// Oishi, 2005): the rounding errors of the additions are summed as well, and the error of that sum
/// is bounded. It decides nearly every sum that the bound of plain f64 sums leaves undecided, at a
/// fraction of an ExactSum's cost (docs/numerics.md section 5).
class CompensatedSum {
 public:
  /// Adds a·b. Both must be finite.
  void add_product(float a, float b) {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double old = sum_;
    sum_ += product;
    const double virtual_product = sum_ - old;
    const double lost = (old - (sum_ - virtual_product)) + (product - virtual_product);
    lost_ += lost;
    magnitude_ += std::abs(lost);
    ++count_;
  }

  /// (float)RN64 of the exact sum, if sum and bound decide it.
  std::optional<float> rounded() const {
    if (magnitude_ == 0.0) return decide(sum_, 0.0);
    if (count_ >= kProvable) return std::nullopt;
    // high + low is sum_ + lost_ exactly.
    const double high = sum_ + lost_;
    const double virtual_lost = high - sum_;
    const double low = (sum_ - (high - virtual_lost)) + (lost_ - virtual_lost);
    // Widened by the rounding error of low ± bound.
    const double bound = (sum_bound(static_cast<double>(count_), magnitude_) +
                          2.0 * kUnitRoundoff64 * std::abs(low)) *
                         (1.0 + 0x1p-50);
    const auto least = static_cast<float>(high + (low - bound));
    const auto most = static_cast<float>(high + (low + bound));
    if (std::bit_cast<std::uint32_t>(least) != std::bit_cast<std::uint32_t>(most))
      return std::nullopt;
    return least;
  }

 private:
  static constexpr std::int64_t kProvable = std::int64_t{1} << 30;

  double sum_ = 0.0;
  double lost_ = 0.0;       // Σ of the rounding errors of the additions to sum_
  double magnitude_ = 0.0;  // Σ of their absolute values
  std::int64_t count_ = 0;
};

/// (float)RN64 of the exact sum of the products that `add_all` adds to its argument; calls it once
/// or twice.
template <class AddAll>
float settled(AddAll&& add_all) {
  CompensatedSum compensated;
  add_all(compensated);
  if (const auto decided = compensated.rounded()) return *decided;
  ExactSum exact;
  add_all(exact);
  return exact.rounded();
}

}  // namespace shardproof
