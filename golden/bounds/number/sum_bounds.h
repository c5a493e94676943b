#pragma once

#include <cstdint>

#include "golden/bounds/number/number.h"

namespace shardproof::bounds {

/// lambda of T3: a sum is further off than lambda·u·sqrt(V) with probability 2·exp(-lambda²/2):
/// 2^-71 for one sum, 2^-41 for any of 10^9 sums.
inline constexpr double kLambda = 10.0;

/// The quantities of a sum's n products p that its bounds need (docs/bounds.md section 1).
struct Sum {
  std::int64_t count = 0;  ///< n
  double value = 0.0;      ///< s = Σp, to twice f64's digits and `error`
  double size = 0.0;       ///< A = Σ|p|
  double range = 0.0;      ///< R of the declared order: largest minus smallest prefix sum
  /// Contributions of the factors' own radii.
  double worst = 0.0, likely = 0.0;
  double error = 0.0;  ///< of `value`, beyond the rounding of its twice as many digits (T8)
};

/// Maximum number of roundings per product (T2); 0: unknown. A proved depth narrows both radii in
/// bound(); one that follows from the declared layouts narrows only the likely radius.
struct Depth {
  std::int64_t roundings = 0;
  bool proved = false;
};
Number bound(const Sum& sum, const DeclaredArithmetic& declared, const Depth& depth = {});

/// S = max(P, N) of T1: no partial sum in any order is larger.
inline double largest_partial(const Sum& sum) {
  return 0.5 * (sum.size + (sum.value < 0 ? -sum.value : sum.value));
}

}  // namespace shardproof::bounds
