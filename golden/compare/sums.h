#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardproof {

/// Sums the partial sums of many adjacent elements, each with a bound on its distance from the
/// exact sum. Does the same operations as BoundedSum (engine/numeric/detail/rounding_test.h) does
/// for one element at a time.
class BlockSums {
 public:
  static constexpr std::int64_t kMost = 256;  ///< elements at a time

  /// Restarts with n elements.
  void clear(std::int64_t n);
  /// Adds one chip's partial sums; `bounds` is null if they are exact.
  void add(const double* values, const float* bounds);
  /// Call after the last add(): computes both ends of the interval that each sum may round to.
  void finish();

  /// Returns true if the n sums from `from` on round unambiguously and equal the words at `want`.
  bool are(const std::byte* want, std::int64_t from, std::int64_t n) const;

 private:
  std::int64_t n_ = 0;
  double count_ = 0.0;
  std::array<double, kMost> sums_, bounds_;
  std::array<float, kMost> low_, high_;
};

}  // namespace shardproof
