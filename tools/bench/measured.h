#pragma once

#include <string>
#include <vector>

#include "tools/bench/row.h"

namespace shardproof::bench {

/// Stopping rule of repeated measurements.
struct Patience {
  int repeats = 15;      ///< maximum number of measurements
  double spread = 0.03;  ///< sufficient spread (statistics.h)
};

/// A row with its measurements.
struct Measured {
  Row row;
  std::vector<Sample> samples = {};
  std::string error = {};  ///< why there are no samples
  double others = 0.0;     ///< share of machine time used by other processes meanwhile

  /// Medians of the samples by either clock.
  Cost figure() const;
  Cost ours() const;
  std::optional<Cost> theirs() const;
  /// Spread of the figure by the deciding clock; the larger one if both decide.
  double figure_spread() const;
  /// Returns "met", "missed", "failed", or "" without a target.
  std::string verdict() const;
  /// Returns whether the spread is reached or not required.
  bool steady(const Patience& patience) const;
};

/// Measures the row until its spread is reached or the repeats are used up.
Measured measure(const Row& row, const Patience& patience);

}  // namespace shardproof::bench
