#pragma once

#include <string>
#include <vector>

#include "tools/bench/row.h"

namespace shardproof::bench {

/// When a row has been measured often enough.
struct Patience {
  int repeats = 15;      ///< at most
  double spread = 0.03;  ///< no more than this (statistics.h)
};

/// A row with its measurements.
struct Measured {
  Row row;
  std::vector<Sample> samples = {};
  std::string error = {};  ///< why there are none
  double others = 0.0;     ///< share of the machine's time that other processes took meanwhile

  /// Medians by either clock.
  Cost figure() const;
  Cost ours() const;
  std::optional<Cost> theirs() const;
  /// Of the figure, by the clock that decides; of both the larger.
  double figure_spread() const;
  /// "met", "missed", "failed", or nothing without a target.
  std::string verdict() const;
  /// Whether its spread was reached, or is none to reach.
  bool steady(const Patience& patience) const;
};

/// Measures the row until its spread is reached or the repeats are used up.
Measured measure(const Row& row, const Patience& patience);

}  // namespace shardproof::bench
