#pragma once

#include <string>
#include <vector>

#include "engine/cost/paper/published.h"
#include "engine/cost/work/efficiency.h"
#include "engine/cost/work/work.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// Returns the numerics of the paper's runs: the released code's rounding points, with activations,
/// caches and partial sums in bf16 and weights of the given type.
Numerics released_numerics(NumberFormat weights);

/// Returns the work of a pass in the paper's runs, and its bounds on the paper's chip, tpu-v4.
/// Throws what WorkFormulas and bounds_of throw.
Work paper_work(const Settings& at);
Bounds paper_bounds(const Settings& at);

/// A measured time and the model's bounds for it.
struct CalibrationPoint {
  std::string name;
  Bounds bounds;         ///< for one pass
  int passes = 1;        ///< passes run in sequence
  double seconds = 0.0;  ///< measured, all passes together

  double estimated(const Efficiency& efficiency) const;
  /// Estimated over measured, less 1.
  double residual(const Efficiency& efficiency) const;
};
/// Returns the points of Tables 2 and 3, which the constants are fitted on.
std::vector<CalibrationPoint> table_points();

/// Returns the constants in their ranges that minimize the sum of squared residuals. The estimate
/// is linear in 1/compute, 1/interconnect and time_of_layer, so the minimum is solved for directly.
/// Throws Error("calibration_c1", ...) if fewer than three points leave it underdetermined.
Efficiency fit(const std::vector<CalibrationPoint>& points);

/// A fit and its quality.
struct Calibration {
  std::vector<CalibrationPoint> points;
  Efficiency efficiency;          ///< rounded to the digits of its printed form
  std::vector<double> residuals;  ///< for each point
  std::vector<double> left_out;   ///< residual of each point under a fit on the others

  double rms() const;
  double left_out_rms() const;
  /// The largest absolute value in left_out.
  double worst_left_out() const;
};
Calibration calibrate(std::vector<CalibrationPoint> points);
/// Returns the calibration on table_points(), computed once.
const Calibration& table_calibration();
/// Returns the text of engine/cost/work/efficiency.txt for this calibration.
std::string print_calibration(const Calibration& calibration);

}  // namespace shardproof::cost
