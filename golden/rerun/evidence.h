#pragma once

#include <string>
#include <vector>

namespace shardproof::rerun {

/// A statement on a value without a bound, because its operands are missing: its distance from
/// exact, beside the distances of runs of the same model in the same arithmetic. It is evidence,
/// not proof, so it never yields `different`.
struct Evidence {
  enum class Says {
    rounding,     ///< at most the largest drift of the runs
    unclear,      ///< larger, but within the limit
    not_rounding  ///< beyond the limit
  };

  double drift = 0.0;  ///< max distance of the value from exact, over its rms
  double least = 0.0, most = 0.0, rms = 0.0;  ///< over the runs' drifts
  double rough = 0.0;  ///< rms of the drifts of runs that round at random; 0 without any
  int runs = 0;
  Says says = Says::unclear;

  /// Returns the limit of rounding: λ = 10 times the larger root mean square (docs/bounds.md).
  double limit() const;
  /// Returns for example "drift 1.1e-6; 32 such runs: 7.1e-7 to 1.5e-6: rounding"; if it is not
  /// rounding, with both thresholds.
  std::string text() const;
};

/// Compares a drift with those of runs (`theirs`) and of runs that round at random (`by_chance`,
/// for values with fewer digits than sums). Unclear without runs, or if one is not finite.
Evidence weigh(double drift, const std::vector<double>& theirs,
               const std::vector<double>& by_chance = {});

}  // namespace shardproof::rerun
