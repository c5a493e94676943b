#pragma once

#include <cmath>

namespace shardproof {

/// (float)exp((double)x): docs/spec.md section 1. Any libm within 8 ulp of f64 gives these bits.
inline float exp32(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }

/// w of swiglu: (float)(g/(1+exp(−g))) in f64.
inline float swish32(float x) {
  const double g = static_cast<double>(x);
  return static_cast<float>(g / (1.0 + std::exp(-g)));
}

/// e of a base-2 softmax: (float)exp2((double)x).
inline float exp2_32(float x) { return static_cast<float>(std::exp2(static_cast<double>(x))); }

/// w of swiglu in a base-2 model, whose gate is halved: (float)(2g/(1+exp(−2g))).
inline float swish2_32(float x) {
  const double g = static_cast<double>(x);
  return static_cast<float>(2.0 * g / (1.0 + std::exp(-2.0 * g)));
}

/// gelu(g) = (float)(g/(1+exp(−2z))), z = 0.7978845608028654·(g+0.044715·g·g·g): the tanh form
/// without its cancellation.
inline float gelu32(float x) {
  const double g = static_cast<double>(x);
  const double z = 0.7978845608028654 * (g + 0.044715 * g * g * g);
  return static_cast<float>(g / (1.0 + std::exp(-2.0 * z)));
}

/// gelu by the error function: (float)(0.5·g·erfc(−g/sqrt(2))).
inline float gelu_erf32(float x) {
  const double g = static_cast<double>(x);
  return static_cast<float>(0.5 * g * std::erfc(-g / std::sqrt(2.0)));
}

}  // namespace shardproof
