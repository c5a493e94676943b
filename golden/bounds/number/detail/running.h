#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "golden/bounds/number/interval.h"
#include "weights/base/bf16.h"

namespace shardproof::bounds {

/// A sum of the f32 regime before its last rounding: within `error` of the f64 number `sum`.
struct Running {
  double sum = 0.0, error = 0.0;
};

/// Returns the largest power of two that is at most x, and 0 for 0.
inline double power_below(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7ff0000000000000U);
}

/// States whether a sum plus its error may reach 2^126. If it cannot, skipping the overflow checks
/// gives the same result.
enum class Overflow { possible, excluded };

/// One rounding of the f32 regime: to f32, or with acc=bf16 to f32 and then bf16. The error is at
/// most unit·p for a number in [p, 2p), p a power of two, or `least` (docs/numerics.md section
/// 10.2); it is unbounded on overflow.
struct Step {
  double unit = 0x1p-24;
  double least = 0x1p-150;

  static Step f32() { return {}; }
  /// The units of both roundings added, and a bound on the least error of both.
  static Step bf16() { return {0x1p-8 + 0x1p-24, 0x1p-133}; }

  /// Returns the error after the sum is rounded. 2^-51 accounts for the f64 roundings of this sum
  /// and of the sum that it becomes part of.
  template <Overflow kOverflow = Overflow::possible>
  double rounded(double sum, double error) const {
    // A number that rounds to infinity is at least (1 − unit)·2^128.
    const double most = (std::abs(sum) + error) * (1 + 2 * unit);
    // Makes the power infinite from 2^128 on, beyond the range of f32.
    constexpr double kScale = kOverflow == Overflow::possible ? 0x1p896 : 1.0;
    const double power = power_below(most) * kScale;
    // Products by powers of two are exact, so fma rounds only the sums.
    return error + std::fma(unit / kScale, power, std::fma(0x1p-51, most, least));
  }

  /// Adds the next term of a chain: first the rounding of the sum so far, then the exact product.
  template <Overflow kOverflow = Overflow::possible>
  void next(double a, double b, Running& x) const {
    x.error = rounded<kOverflow>(x.sum, x.error);
    x.sum = std::fma(a, b, x.sum);
  }
};

/// Returns the interval of a sum of n terms; the error includes the first n − 1 roundings.
inline Interval interval_of(const Running& x, double n) {
  if (n < 2) return {x.sum, x.sum};
  // Adds the f64 rounding of the sum, and those of the error: five operations per term.
  return around(x.sum, (x.error + 0x1p-53 * std::abs(x.sum)) * (1 + n * 0x1p-50));
}

/// Returns the interval of the chain c = fma(a_k, b_k, c) of n terms, starting from +0, with
/// factors a(k) and b(k).
template <class A, class B>
Interval chain(std::size_t n, A&& a, B&& b, const Step& step = {}) {
  Running x;
  for (std::size_t k = 0; k < n; ++k)
    step.next(static_cast<double>(a(k)), static_cast<double>(b(k)), x);
  return interval_of(x, static_cast<double>(n));
}

/// A growing sum of partial sums. Its last rounding is deferred until the sum is used, because the
/// interval of a value includes that rounding.
struct Growing {
  enum class Waits { nothing, f32, bf16 };
  Running x;
  Waits waits = Waits::nothing;
};

/// Addition and hop operations of the f32 regime on Growing, for scalar::Adding.
struct GrowingSums {
  bool rounds_sums = false;  ///< to bf16, not f32
  bool rounds_hops = false;

  static Running settled(const Growing& g) {
    if (g.waits == Growing::Waits::nothing) return g.x;
    const Step step = g.waits == Growing::Waits::bf16 ? Step::bf16() : Step::f32();
    return {g.x.sum, step.rounded(g.x.sum, g.x.error) * (1 + 0x1p-49)};
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
