#pragma once

#include <array>
#include <cstdint>

namespace shardproof {

/// An exact sum of products of f32 pairs: a fixed-point number wide enough for every product
/// (multiples of 2^-298 below 2^256) and 2^31 of them. Order does not matter, nothing is lost.
/// The engine's last resort, for the rare sum that the rounding test leaves undecided.
class ExactSum {
 public:
  /// Adds a·b. Both must be finite.
  void add_product(float a, float b);

  /// RN64 of the exact sum, ties to even; an exact zero is +0 (docs/spec.md section 1).
  double rounded64() const;

  /// (float)RN64 of the exact sum: the value of a contraction in the exact regime.
  float rounded() const { return static_cast<float>(rounded64()); }

 private:
  static constexpr int kLimbs = 20;     // 32 bits each, least significant first
  static constexpr int kLowest = -298;  // exponent of bit 0: the product of two least subnormals
  std::array<std::int64_t, kLimbs> limbs_{};
};

}  // namespace shardproof
