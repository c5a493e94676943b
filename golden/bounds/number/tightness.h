#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "golden/bounds/number/fit.h"
#include "golden/bounds/number/interval.h"

namespace shardproof::bounds {

/// How tight the bounds of a run are, in the words of fit_of. Intervals as wide as the value itself
/// count as loose, not as not_judged: the order of the sums is known.
struct Tightness {
  std::int64_t within = 0;   ///< values
  std::int64_t running = 0;  ///< of those within: sums, by their running bounds
  std::int64_t formula = 0;  ///< of those within: functions; all others have one right value
  std::int64_t near = 0;
  std::int64_t loose = 0;
  /// Allowed error over actual error, for each sum that has an error and room for one.
  std::vector<double> slacks;
  double least_slack = 0.0;  ///< the smallest of `slacks`; 0 if empty
  std::string tightest;      ///< the step with the smallest slack

  /// Counts a value whose elements are all inside their bounds.
  void add(const std::string& step, Kind kind, const Extent& extent, double slack);
  void add(const Tightness& other);
  /// Returns the median of `slacks`; 0 if empty.
  double median_slack() const;
  /// Returns "bounds: 810 values within (sums: 130, functions: 80, of one right value: 600), 3
  /// near, 4 loose; slack of sums: least 1.21 at decode.1.layer0.q, median 6.3".
  std::string to_string() const;
};

}  // namespace shardproof::bounds
