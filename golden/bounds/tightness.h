#pragma once

#include <cstdint>
#include <string>

namespace shardproof::bounds {

/// How much the bounds of a run say. A value is loose where some element's interval reaches
/// further than one hundredth of the value's root mean square: what lies inside proves little.
struct Tightness {
  std::int64_t within = 0;  ///< values, none of them loose
  std::int64_t loose = 0;
  double least_slack = 0.0;  ///< over the values that have any error; 0 without one
  std::string tightest;      ///< the step of that value

  /// A value whose elements lie inside. `reach`: the most that an element may be off.
  void add(const std::string& step, double reach, double root_mean_square, double slack);
  void add(const Tightness& other);
  /// "bounds: 810 values within, 4 loose, least slack 1.2 at decode.1.layer0.q".
  std::string to_string() const;
};

/// One hundredth.
inline constexpr double kLoose = 0.01;

}  // namespace shardproof::bounds
