#include "engine/cost/paper/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "engine/cost/chip/chip.h"
#include "engine/cost/work/work.h"

namespace shardproof::cost {
namespace {

/// The estimate is linear in three unknowns: 1/compute, 1/interconnect, time_of_layer.
constexpr std::size_t kUnknowns = 3;
using Unknowns = std::array<double, kUnknowns>;
/// Lower bounds of the unknowns: no share is above 1 and no time below 0.
constexpr Unknowns kLeast{1.0, 1.0, 0.0};

/// A relative residual: the coefficients of the unknowns, and its value where they are 0.
struct LinearResidual {
  Unknowns of{};
  double rest = 0.0;
};

LinearResidual linear_residual(const CalibrationPoint& point) {
  const Seconds total = point.bounds.total();
  const double each = point.passes / point.seconds;
  return {{total.compute * each, total.communication * each, point.bounds.layers * each},
          (total.memory + total.hops) * each - 1.0};
}

using NormalRows = std::array<Unknowns, kUnknowns>;

double determinant(const NormalRows& m) {
  return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) +
         m[0][1] * (m[1][2] * m[2][0] - m[1][0] * m[2][2]) +
         m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

/// Solves the normal equations of the free unknowns by Cramer's rule, whose rounding is easy to
/// bound. Returns nothing if they are singular.
std::optional<Unknowns> least_squares(const std::vector<LinearResidual>& residuals,
                                      const std::array<bool, kUnknowns>& fixed) {
  NormalRows rows{};
  Unknowns right{};
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    if (fixed.at(i)) {
      rows.at(i).at(i) = 1.0;
      right.at(i) = kLeast.at(i);
      continue;
    }
    for (const LinearResidual& r : residuals) {
      right.at(i) -= r.of.at(i) * r.rest;
      // Fixed unknowns move to the right side, so that they keep their values without rounding.
      for (std::size_t j = 0; j < kUnknowns; ++j)
        if (fixed.at(j))
          right.at(i) -= r.of.at(i) * r.of.at(j) * kLeast.at(j);
        else
          rows.at(i).at(j) += r.of.at(i) * r.of.at(j);
    }
  }
  const double of_rows = determinant(rows);
  if (of_rows == 0.0) return std::nullopt;
  Unknowns solution = kLeast;
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    if (fixed.at(i)) continue;
    NormalRows with_right = rows;
    for (std::size_t row = 0; row < kUnknowns; ++row) with_right.at(row).at(i) = right.at(row);
    solution.at(i) = determinant(with_right) / of_rows;
  }
  return solution;
}

double squares(const std::vector<LinearResidual>& residuals, const Unknowns& unknowns) {
  double sum = 0.0;
  for (const LinearResidual& r : residuals) {
    double residual = r.rest;
    for (std::size_t i = 0; i < kUnknowns; ++i) residual += r.of.at(i) * unknowns.at(i);
    sum += residual * residual;
  }
  return sum;
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

Numerics released_numerics(NumberFormat weights) {
  Numerics numerics = kReleasedNumerics;
  numerics.weights = weights;
  return numerics;
}

Work paper_work(const Settings& at) {
  return work_of(at.model(), released_numerics(at.weights()), at.torus(), at.strategy(), at.pass());
}
Bounds paper_bounds(const Settings& at) {
  return bounds_of(paper_work(at), find_chip(kFittedChip), released_numerics(at.weights()).act);
}

double CalibrationPoint::estimated(const Efficiency& efficiency) const {
  return passes * estimate(bounds, efficiency);
}
double CalibrationPoint::residual(const Efficiency& efficiency) const {
  return estimated(efficiency) / seconds - 1.0;
}

std::vector<CalibrationPoint> table_points() {
  std::vector<CalibrationPoint> points;
  for (const auto& [name, of] : tables_2_and_3())
    points.push_back({of.text("model") + name.substr(name.find(' ')), paper_bounds(of),
                      static_cast<int>(of.count("steps", 1)), of.number("seconds")});
  return points;
}

Efficiency fit(const std::vector<CalibrationPoint>& points) {
  if (points.size() < kUnknowns)
    throw Error("calibration_c1", fmt::format("{} points for {} constants; legal: {} or more",
                                              points.size(), kUnknowns, kUnknowns));
  std::vector<LinearResidual> residuals;
  for (const CalibrationPoint& point : points) residuals.push_back(linear_residual(point));
  // The constrained minimum is the minimum with some unknowns fixed at their bounds: try every set.
  Unknowns best = kLeast;
  double least = squares(residuals, best);
  for (unsigned held = 0; held < 1U << kUnknowns; ++held) {
    std::array<bool, kUnknowns> fixed{};
    for (std::size_t i = 0; i < kUnknowns; ++i) fixed.at(i) = (held >> i & 1U) != 0;
    const std::optional<Unknowns> found = least_squares(residuals, fixed);
    if (!found) continue;
    bool legal = true;
    for (std::size_t i = 0; i < kUnknowns; ++i) legal = legal && found->at(i) >= kLeast.at(i);
    const double sum = squares(residuals, *found);
    if (!legal || !(sum < least)) continue;
    least = sum;
    best = *found;
  }
  return {1.0 / best[0], 1.0 / best[1], best[2]};
}

double Calibration::rms() const { return root_mean_square(residuals); }
double Calibration::left_out_rms() const { return root_mean_square(left_out); }
double Calibration::worst_left_out() const {
  double worst = 0.0;
  for (const double residual : left_out) worst = std::max(worst, std::abs(residual));
  return worst;
}

Calibration calibrate(std::vector<CalibrationPoint> points) {
  Calibration calibration;
  calibration.efficiency = parse_efficiency(print_efficiency(fit(points)));
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<CalibrationPoint> others = points;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    calibration.residuals.push_back(points[i].residual(calibration.efficiency));
    calibration.left_out.push_back(points[i].residual(fit(others)));
  }
  calibration.points = std::move(points);
  return calibration;
}

const Calibration& table_calibration() {
  static const Calibration made = calibrate(table_points());
  return made;
}

std::string print_calibration(const Calibration& calibration) {
  std::string text =
      "# The constants of the calibrated estimate (docs/cost.md), fitted on the measured times of\n"
      "# the paper's Tables 2 and 3 alone. Written by `shardproof paper --fit`.\n"
      "# compute, interconnect: shares of a chip's peak and of its bandwidth that are reached;\n"
      "# time_of_layer: what each layer takes beside its work.\n";
  text += print_efficiency(calibration.efficiency);
  text += fmt::format(
      "\n# Estimated over measured, less 1: by these constants, and by constants that are fitted "
      "on\n"
      "# the other points.\n# {:<36}{:>11}{:>11}{:>8}{:>10}\n",
      "point", "measured s", "estimate s", "fitted", "left out");
  for (std::size_t i = 0; i < calibration.points.size(); ++i) {
    const CalibrationPoint& point = calibration.points[i];
    text += fmt::format("# {:<36}{:>11.4g}{:>11.4g}{:>7.1f}%{:>9.1f}%\n", point.name, point.seconds,
                        point.estimated(calibration.efficiency), 100.0 * calibration.residuals[i],
                        100.0 * calibration.left_out[i]);
  }
  text += fmt::format("# {:<58}{:>7.1f}%{:>9.1f}%\n", "root mean square", 100.0 * calibration.rms(),
                      100.0 * calibration.left_out_rms());
  return text;
}

}  // namespace shardproof::cost
