#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace shardproof::oracle {

/// Rounds to nearest even to bf16: to a multiple of 2^(e-7) for |v| in [2^e, 2^(e+1)), but not
/// finer than the smallest bf16, 2^-133. Works in f64 by adding a number whose last bit is that
/// multiple: lower bits are rounded off, and the difference is exact.
inline float bf16(float v) {
  if (!std::isfinite(v)) return v;
  const auto x = static_cast<double>(v);
  constexpr std::uint64_t kExponent = std::uint64_t{0x7ff} << 52;
  const double power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & kExponent);
  const double large = 0x1.8p45 * std::max(power, 0x1p-126);
  return static_cast<float>(std::copysign((x + large) - large, x));
}

/// The functions of docs/spec.md section 2: f64, left to right, from f32 and cast to f32.
inline float exp_of(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }

/// Base-2 models: 2^x, and swish of an argument halved in gate's weights.
inline float exp2_of(float x) { return static_cast<float>(std::exp2(static_cast<double>(x))); }
inline float swish2(float x) {
  const double g = 2 * static_cast<double>(x);
  return static_cast<float>(g / (1 + std::exp(-g)));
}

inline float swish(float x) {
  const double g = x;
  return static_cast<float>(g / (1 + std::exp(-g)));
}

inline float gelu(float x) {
  const double g = x;
  const double z = 0.7978845608028654 * (g + 0.044715 * g * g * g);
  return static_cast<float>(g / (1 + std::exp(-2 * z)));
}

inline float gelu_erf(float x) {
  const double g = x;
  return static_cast<float>(0.5 * g * std::erfc(-g / std::sqrt(2.0)));
}

}  // namespace shardproof::oracle
