#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "golden/bounds/number/fit.h"
#include "golden/bounds/number/interval.h"

namespace shardproof::bounds {

/// How much the bounds of a run say, in the words of fit_of. Where an interval is as wide as the
/// value itself it is loose, too: the order of the sums is known.
struct Tightness {
  std::int64_t within = 0;   ///< values
  std::int64_t running = 0;  ///< of those within, sums by their running bounds
  std::int64_t formula = 0;  ///< and functions; of the others each element has one right value
  std::int64_t near = 0;
  std::int64_t loose = 0;
  /// What was allowed over what happened, of each sum that has any error and room for one.
  std::vector<double> slacks;
  double least_slack = 0.0;  ///< of these; 0 without one
  std::string tightest;      ///< the step of that value

  /// A value whose elements lie inside.
  void add(const std::string& step, Kind kind, const Extent& extent, double slack);
  void add(const Tightness& other);
  /// Of these; 0 without one.
  double median_slack() const;
  /// "bounds: 810 values within (sums: 130, functions: 80, of one right value: 600), 3 near, 4
  /// loose; slack of sums: least 1.21 at decode.1.layer0.q, median 6.3".
  std::string to_string() const;
};

}  // namespace shardproof::bounds
