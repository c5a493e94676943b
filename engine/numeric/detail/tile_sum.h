#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/numeric/buffer.h"
#include "engine/numeric/detail/rounding_test.h"

namespace shardproof {

/// Sums of contiguous elements, with their bounds; as BoundedSum, except that with bounded addends
/// every addition counts as rounding (docs/numerics.md section 3).
class TileSum {
 public:
  /// Resets to n empty sums, +0 and exact.
  void start(std::int64_t n) {
    size_ = static_cast<std::size_t>(n);
    sum_.resize(size_);
    bound_.resize(size_);
    std::fill_n(sum_.data(), size_, 0.0);
    std::fill_n(bound_.data(), size_, 0.0);
    count_ = 0.0;
  }
  std::int64_t size() const { return static_cast<std::int64_t>(size_); }

  /// Adds n addends from element `first` on; `bounds` is null if they are exact. Elements outside
  /// the range are treated as having an exact zero added.
  void add(std::int64_t first, std::int64_t n, const double* values, const float* bounds) {
    double* const sum = sum_.data() + first;
    double* const bound = bound_.data() + first;
    if (bounds != nullptr) {
      for (std::int64_t i = 0; i < n; ++i) {
        sum[i] += values[i];
        bound[i] += static_cast<double>(bounds[i]) + std::abs(sum[i]) * kUnitRoundoff64;
      }
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        const double old = sum[i];
        const double next = old + values[i];
        const double virtual_value = next - old;
        const double lost = (old - (next - virtual_value)) + (values[i] - virtual_value);
        bound[i] += lost != 0.0 ? std::abs(next) * kUnitRoundoff64 : 0.0;
        sum[i] = next;
      }
    }
    count_ += 1.0;
  }

  /// Never -0.
  const double* values() const { return sum_.data(); }
  /// Returns the final bounds. The factor covers the rounding of their own additions.
  const double* finish() {
    const double factor = 1.0 + (count_ + 2.0) * 0x1p-50;
    for (std::size_t i = 0; i < size_; ++i) bound_[i] *= factor;
    return bound_.data();
  }

 private:
  Buffer<double> sum_, bound_;
  std::size_t size_ = 0;
  double count_ = 0.0;
};

}  // namespace shardproof
