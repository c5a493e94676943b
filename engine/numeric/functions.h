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

}  // namespace shardproof
