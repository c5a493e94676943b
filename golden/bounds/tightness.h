#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "golden/bounds/interval.h"

namespace shardproof::bounds {

/// How much the bounds of a run say. A value is loose where some element's interval reaches
/// further than one hundredth of the value's root mean square: what lies inside proves little.
struct Tightness {
  std::int64_t within = 0;   ///< values, none of them loose
  std::int64_t running = 0;  ///< of those within, sums by their running bounds
  std::int64_t formula = 0;  ///< and functions; of the others each element has one right value
  std::int64_t loose = 0;
  /// What was allowed over what happened, of each sum that has any error and room for one.
  std::vector<double> slacks;
  double least_slack = 0.0;  ///< of these; 0 without one
  std::string tightest;      ///< the step of that value

  /// A value whose elements lie inside. `reach`: the most that an element may be off.
  void add(const std::string& step, Kind kind, double reach, double root_mean_square, double slack);
  void add(const Tightness& other);
  /// Of these; 0 without one.
  double median_slack() const;
  /// "bounds: 810 values within (sums: 130, functions: 80, of one right value: 600), 4 loose; slack
  /// of sums: least 1.21 at decode.1.layer0.q, median 6.3".
  std::string to_string() const;
};

/// One hundredth.
inline constexpr double kLoose = 0.01;
/// Whether what lies inside proves something. Not where one of these is infinite or no number.
bool narrow(double reach, double root_mean_square);

}  // namespace shardproof::bounds
