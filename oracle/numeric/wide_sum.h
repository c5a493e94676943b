#pragma once

#include <array>
#include <cstdint>

#include "weights/base/error.h"

namespace shardproof::oracle {

/// The exact sum of f64 numbers and of products of two of them: a 4,480-bit integer in units of
/// 2^-2148, the smallest product.
class WideSum {
 public:
  /// Adds a·b exactly. An infinity or NaN, from then on, makes the sum NaN.
  void add(double a, double b = 1.0);
  /// Returns the sum so far, rounded once to nearest even; an exact zero is +0.
  double value() const;

 private:
  std::array<std::uint64_t, 70> words_{};  // two's complement, least significant first
  bool finite_ = true;
};

}  // namespace shardproof::oracle
