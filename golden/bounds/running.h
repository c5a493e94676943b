#pragma once

#include <cmath>
#include <cstddef>

#include "golden/bounds/interval.h"
#include "weights/bf16.h"

namespace shardproof::bounds {

/// One rounding of the f32 regime: to f32, or with acc=bf16 on to bf16 (docs/numerics.md section
/// 10.2). What is added to a sum's error when it is rounded, for each of the error and the sum.
struct Step {
  double unit = 0x1p-24;
  double least = 0x1p-150;

  static Step f32() { return {}; }
  /// (1 + 2^-24)(1 + 2^-8) − 1, and the least of both.
  static Step bf16() { return {0x1p-8 + 0x1p-24 + 0x1p-32, 0x1p-133}; }

  /// Own additions are f64: of half an ulp each, of an ulp for the two that share a sum.
  double of_sum() const { return unit + 0x1p-52; }
};

/// A sum of the f32 regime before its last rounding: at most `error` from the f64 number `sum`.
struct Running {
  double sum = 0.0, error = 0.0;
};

/// The interval of a sum of n terms, n − 1 of whose roundings are in the error.
inline Interval interval_of(const Running& x, double n, const Step& step) {
  if (n < 2) return {x.sum, x.sum};
  // The error's own f64 operations: three a term. Subnormal results: one least a term, grown.
  const double own = (x.error + 0x1p-53 * std::abs(x.sum)) * (1 + n * 0x1p-50);
  return around(x.sum, own + n * step.least * std::exp(n * step.unit));
}

/// The chain c = fma(a_k, b_k, c) from +0 of n terms, by its factors a(k) and b(k).
template <class A, class B>
Interval chain(std::size_t n, A&& a, B&& b, const Step& step = {}) {
  Running x;
  for (std::size_t k = 0; k < n; ++k) {
    x.error = x.error * (1 + step.unit) + step.of_sum() * std::abs(x.sum);
    x.sum += static_cast<double>(a(k)) * static_cast<double>(b(k));
  }
  return interval_of(x, static_cast<double>(n), step);
}

/// A sum of partial sums while it grows: its last rounding waits until it is used, since the
/// interval of a value is rounded with it.
struct Growing {
  enum class Waits { nothing, f32, bf16 };
  Running x;
  Waits waits = Waits::nothing;
};

/// Additions of the f32 regime on such sums, for scalar::Adding.
struct GrowingSums {
  bool rounds_sums = false;  ///< to bf16
  bool rounds_hops = false;

  static Running settled(const Growing& g) {
    if (g.waits == Growing::Waits::nothing) return g.x;
    const Step step = g.waits == Growing::Waits::bf16 ? Step::bf16() : Step::f32();
    // An f32 addition is exact where its result is subnormal; a rounding to bf16 is not.
    const double least = g.waits == Growing::Waits::bf16 ? step.least : 0.0;
    return {g.x.sum, g.x.error * (1 + step.unit) * (1 + 0x1p-50) +
                         step.of_sum() * std::abs(g.x.sum) + least};
  }
  Growing plus(const Growing& a, const Growing& b) const {
    const Running left = settled(a), right = settled(b);
    return {{left.sum + right.sum, (left.error + right.error) * (1 + 0x1p-50)},
            rounds_sums ? Growing::Waits::bf16 : Growing::Waits::f32};
  }
  Growing hop(const Growing& g) const {
    if (!rounds_hops) return g;
    if (g.waits == Growing::Waits::nothing)
      return {{static_cast<double>(round_to_bf16(static_cast<float>(g.x.sum))), g.x.error}};
    return {g.x, Growing::Waits::bf16};
  }
};

inline Interval interval_of(const Growing& g) {
  return around(g.x.sum, g.x.error > 0 ? g.x.error + 0x1p-52 * std::abs(g.x.sum) : 0.0);
}

}  // namespace shardproof::bounds
