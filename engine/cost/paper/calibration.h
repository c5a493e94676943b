#pragma once

#include <string>
#include <vector>

#include "engine/cost/paper/published.h"
#include "engine/cost/work/efficiency.h"
#include "weights/base/error.h"

namespace shardproof::cost {

/// The arithmetic of the paper's runs: the released code's rounding points, so that activations,
/// caches and partial sums are bf16, with weights of this type.
Numerics released_numerics(WeightType weights);

/// The bounds of a pass under a strategy on the paper's chip, tpu-v4. Throws what WorkFormulas and
/// bounds_of throw.
Bounds paper_bounds(const ModelConfig& model, const Torus& torus, const Strategy& strategy,
                    const Pass& pass, WeightType weights);

/// The strategy of a pass as it was measured.
Strategy strategy_of(FfnLayout ffn, AttentionLayout attention);
/// One pass of it: the prefill, or the step in the middle of the decode steps, whose time is linear
/// in the cached positions.
Pass pass_of(const MeasuredPass& measured);

/// A measured time beside what the model has for it.
struct CalibrationPoint {
  std::string name;
  Bounds bounds;         ///< of one pass
  int passes = 1;        ///< that were run one after another
  double seconds = 0.0;  ///< of all of them

  double estimated(const Efficiency& efficiency) const;
  /// Estimated over measured, less 1.
  double residual(const Efficiency& efficiency) const;
};
/// Tables 2 and 3, all that the constants are fitted on.
std::vector<CalibrationPoint> table_points();

/// The constants with the least sum of squares of the residuals, in their ranges. The estimate is
/// linear in 1/compute, 1/interconnect and time_of_layer, so that the least is solved for, not
/// searched. Throws Error("calibration_c1", ...) where fewer than three points leave it open.
Efficiency fit(const std::vector<CalibrationPoint>& points);

/// A fit and how good it is.
struct Calibration {
  std::vector<CalibrationPoint> points;
  Efficiency efficiency;          ///< rounded to the digits that its text has
  std::vector<double> residuals;  ///< of each point
  std::vector<double> left_out;   ///< the residual of each, of a fit on the others

  double rms() const;
  double left_out_rms() const;
  /// The largest of left_out, without its sign.
  double worst_left_out() const;
};
Calibration calibrate(std::vector<CalibrationPoint> points);
/// That of table_points(), made once.
const Calibration& table_calibration();
/// The text of engine/cost/work/efficiency.txt that follows.
std::string print_calibration(const Calibration& calibration);

}  // namespace shardproof::cost
