#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weights/base/error.h"

namespace shardproof::oracle {

/// S of docs/spec.md section 1, one product at a time: a 640-bit integer in units of 2^-298, the
/// smallest product of two f32. It holds 2^85 products of the largest f32.
class Sum {
 public:
  /// Adds a·b exactly. Throws Error("oracle_finite") if a factor is infinite or NaN.
  void add(float a, float b = 1.0F);
  /// (float) RN64 of the sum so far; an exact zero is +0.
  float value() const;

 private:
  std::array<std::uint64_t, 10> words_{};  // two's complement, least significant first
};

/// S(x, y) and S(x, 1) of vectors: in 128-bit integers if they fit, otherwise by Sum.
float sum_of_products(std::span<const float> x, std::span<const float> y);
float sum_of(std::span<const float> x);

}  // namespace shardproof::oracle
