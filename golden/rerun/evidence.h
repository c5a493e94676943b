#pragma once

#include <string>
#include <vector>

namespace shardproof::rerun {

/// What is said of a value that no bound holds, as its operands are not there: how far it is from
/// exact, beside how far runs of the same model in the same arithmetic are. It is evidence and no
/// proof, so that it never says `different`.
struct Evidence {
  enum class Says {
    rounding,     ///< no further than the furthest of the runs
    unclear,      ///< further, but not beyond the limit
    not_rounding  ///< beyond the limit
  };

  double drift = 0.0;  ///< of the value: the largest distance from exact, over its rms
  double least = 0.0, most = 0.0, rms = 0.0;  ///< of the runs' drifts
  double rough = 0.0;  ///< root mean square of those of runs that round by chance; 0 without
  int runs = 0;
  Says says = Says::unclear;

  /// Beyond which it is not rounding: λ = 10 times the larger root mean square (docs/bounds.md).
  double limit() const;
  /// "drift 1.1e-6; 32 such runs: 7.1e-7 to 1.5e-6: rounding"; where it is not, with both edges.
  std::string text() const;
};

/// `theirs`: the drifts of the runs; `by_chance`: of runs that round by chance, where values have
/// fewer digits than sums. Of no run, or of runs that are not finite, nothing follows.
Evidence weigh(double drift, const std::vector<double>& theirs,
               const std::vector<double>& by_chance = {});

}  // namespace shardproof::rerun
