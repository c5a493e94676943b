#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardproof {

/// The judge's sums of the summands of many elements that lie side by side, each with a bound on
/// its distance from the exact sum: what BoundedSum (engine/numeric/detail/rounding_test.h) makes
/// of one element after the other, operation by operation.
class BlockSums {
 public:
  static constexpr std::int64_t kMost = 256;  ///< elements at a time

  /// Begins anew, with n elements.
  void clear(std::int64_t n);
  /// Adds one chip's summands; `bounds` is null where they are exact.
  void add(const double* values, const float* bounds);
  /// After the last: both ends that every sum may be rounded to.
  void finish();

  /// Whether the n sums from `from` on are decided, and are what they must be.
  bool are(const std::byte* want, std::int64_t from, std::int64_t n) const;

 private:
  std::int64_t n_ = 0;
  double count_ = 0.0;
  std::array<double, kMost> sums_, bounds_;
  std::array<float, kMost> low_, high_;
};

}  // namespace shardproof
