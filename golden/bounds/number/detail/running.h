#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "golden/bounds/number/interval.h"
#include "weights/base/bf16.h"

namespace shardproof::bounds {

/// A sum of the f32 regime before its last rounding: at most `error` from the f64 number `sum`.
struct Running {
  double sum = 0.0, error = 0.0;
};

/// The largest power of two that is not above x; 0 of 0.
inline double power_below(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7ff0000000000000U);
}

/// Whether a sum may come to 2^126, together with its error. Where it surely does not, the same
/// comes out without a look at what overflows.
enum class Overflow { possible, excluded };

/// One rounding of the f32 regime: to f32, or with acc=bf16 on to bf16. Of a number of [p, 2p), p a
/// power of two, it is off by at most unit·p, or by `least` (docs/numerics.md section 10.2); by
/// anything where it overflows.
struct Step {
  double unit = 0x1p-24;
  double least = 0x1p-150;

  static Step f32() { return {}; }
  /// The units of both roundings, and more than the least of both.
  static Step bf16() { return {0x1p-8 + 0x1p-24, 0x1p-133}; }

  /// The error once the sum is rounded. 2^-51 pays for the f64 roundings of the sum, here and in
  /// the sum that it becomes part of.
  template <Overflow kOverflow = Overflow::possible>
  double rounded(double sum, double error) const {
    // A number that a rounding makes infinite is at least (1 − unit)·2^128.
    const double most = (std::abs(sum) + error) * (1 + 2 * unit);
    // Infinite from 2^128 on, which no f32 is.
    constexpr double kScale = kOverflow == Overflow::possible ? 0x1p896 : 1.0;
    const double power = power_below(most) * kScale;
    // Products by powers of two are exact, so that fma rounds the sums alone.
    return error + std::fma(unit / kScale, power, std::fma(0x1p-51, most, least));
  }

  /// The next term of a chain: its sum's last rounding, then the product, which is exact.
  template <Overflow kOverflow = Overflow::possible>
  void next(double a, double b, Running& x) const {
    x.error = rounded<kOverflow>(x.sum, x.error);
    x.sum = std::fma(a, b, x.sum);
  }
};

/// The interval of a sum of n terms, n − 1 of whose roundings are in the error.
inline Interval interval_of(const Running& x, double n) {
  if (n < 2) return {x.sum, x.sum};
  // The sum's own last rounding; and the error's, five operations a term.
  return around(x.sum, (x.error + 0x1p-53 * std::abs(x.sum)) * (1 + n * 0x1p-50));
}

/// The chain c = fma(a_k, b_k, c) from +0 of n terms, by its factors a(k) and b(k).
template <class A, class B>
Interval chain(std::size_t n, A&& a, B&& b, const Step& step = {}) {
  Running x;
  for (std::size_t k = 0; k < n; ++k)
    step.next(static_cast<double>(a(k)), static_cast<double>(b(k)), x);
  return interval_of(x, static_cast<double>(n));
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
