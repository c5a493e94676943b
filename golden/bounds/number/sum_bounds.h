#pragma once

#include <cstdint>

#include "golden/bounds/number/number.h"

namespace shardproof::bounds {

/// lambda of T3: a sum is further off than lambda·u·sqrt(V) with probability 2·exp(-lambda²/2),
/// which is 2^-71 a sum, or 2^-41 that one of 10^9 is.
inline constexpr double kLambda = 10.0;

/// What bounds of a sum need of its n products p (docs/bounds.md section 1).
struct Sum {
  std::int64_t count = 0;  ///< n
  double value = 0.0;      ///< s = Σp, to twice f64's digits
  double size = 0.0;       ///< A = Σ|p|
  double range = 0.0;      ///< R of the declared order: of the prefix sums, the most less the least
  /// Of the factors' own radii.
  double worst = 0.0, likely = 0.0;
};

/// The sum of an evaluation as declared, in which no product goes through more than `depth`
/// roundings where `proved` says that it does so (T2), as the declared layouts have it where not;
/// 0: nothing is known of it.
struct Depth {
  std::int64_t roundings = 0;
  bool proved = false;
};
Number bound(const Sum& sum, const Declared& declared, const Depth& depth = {});

/// S = max(P, N) of T1: no partial sum of any order is larger.
inline double largest_partial(const Sum& sum) {
  return 0.5 * (sum.size + (sum.value < 0 ? -sum.value : sum.value));
}

}  // namespace shardproof::bounds
