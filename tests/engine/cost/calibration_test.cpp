// The fit of the constants: on points that the estimate itself makes, on any, on the paper's.
#include "engine/cost/calibration.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace shardproof::cost {
namespace {

double drawn(double least, double most) {
  return least + (most - least) * *rc::gen::inRange(0, 10001) / 1e4;
}

Seconds drawn_seconds() {
  return {.compute = drawn(1e-5, 1e-3),
          .memory = drawn(0, 1e-3),
          .communication = drawn(1e-5, 1e-3),
          .hops = drawn(0, 1e-4)};
}

std::vector<CalibrationPoint> drawn_points() {
  std::vector<CalibrationPoint> points(static_cast<std::size_t>(*rc::gen::inRange(4, 10)));
  for (CalibrationPoint& point : points) {
    point.bounds = {
        .layer = drawn_seconds(), .ends = drawn_seconds(), .layers = *rc::gen::inRange(1, 120)};
    point.passes = *rc::gen::inRange(1, 65);
    point.seconds = point.passes * point.bounds.additive() * drawn(0.5, 3.0);
  }
  return points;
}

double squares(const std::vector<CalibrationPoint>& points, const Efficiency& efficiency) {
  double sum = 0.0;
  for (const CalibrationPoint& point : points) sum += std::pow(point.residual(efficiency), 2);
  return sum;
}

RC_GTEST_PROP(Calibration, FindsTheConstantsThatTheTimesWereMadeWith, ()) {
  const Efficiency made{.compute = drawn(0.3, 1.0),
                        .interconnect = drawn(0.1, 1.0),
                        .time_of_layer = drawn(0.0, 1e-4)};
  std::vector<CalibrationPoint> points = drawn_points();
  for (CalibrationPoint& point : points) point.seconds = point.estimated(made);
  const Efficiency found = fit(points);
  for (const CalibrationPoint& point : points) RC_ASSERT(std::abs(point.residual(found)) < 1e-6);
}

/// Whatever the times are: no constants in their ranges are better.
RC_GTEST_PROP(Calibration, NoOtherConstantsAreBetter, ()) {
  const std::vector<CalibrationPoint> points = drawn_points();
  const Efficiency found = fit(points);
  RC_ASSERT(found.compute > 0.0 && found.compute <= 1.0);
  RC_ASSERT(found.interconnect > 0.0 && found.interconnect <= 1.0);
  RC_ASSERT(found.time_of_layer >= 0.0);
  const double least = squares(points, found);
  for (int i = 0; i < 20; ++i) {
    const Efficiency other{.compute = std::min(1.0, found.compute * drawn(0.8, 1.25)),
                           .interconnect = std::min(1.0, found.interconnect * drawn(0.8, 1.25)),
                           .time_of_layer = found.time_of_layer * drawn(0.8, 1.25) +
                                            *rc::gen::element(0.0, drawn(0.0, 1e-5))};
    RC_ASSERT(squares(points, other) >= least * (1 - 1e-9));
  }
}

/// By eye: what is faster than the bounds has every constant at its end of the range.
TEST(Calibration, KeepsToTheRanges) {
  std::vector<CalibrationPoint> points(4);
  for (std::size_t i = 0; i < points.size(); ++i)
    points[i] = {
        .name = "",
        .bounds = {.layer = {.compute = 1.0 + static_cast<double>(i), .communication = 1.0},
                   .ends = {},
                   .layers = 1},
        .passes = 1,
        .seconds = 1.0};
  EXPECT_EQ(fit(points), Efficiency{});
  points.resize(2);
  try {
    fit(points);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.label(), "calibration_c1");
  }
}

TEST(Calibration, LeavesEachPointOutOnce) {
  std::vector<CalibrationPoint> points;
  for (const double compute : {1.0, 2.0, 3.0, 4.0})
    points.push_back(
        {.name = "",
         .bounds = {.layer = {.compute = compute, .memory = 0.5, .communication = 1.0 / compute},
                    .ends = {},
                    .layers = 2},
         .passes = 3,
         .seconds = 20.0 * compute});
  points[1].seconds *= 1.5;
  const Calibration calibration = calibrate(points);
  ASSERT_EQ(calibration.left_out.size(), points.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<CalibrationPoint> others = points;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(calibration.left_out[i], points[i].residual(fit(others)));
    EXPECT_EQ(calibration.residuals[i], points[i].residual(calibration.efficiency));
    worst = std::max(worst, std::abs(calibration.left_out[i]));
  }
  EXPECT_EQ(calibration.worst_left_out(), worst);
  EXPECT_GE(calibration.left_out_rms(), calibration.rms());
}

TEST(Calibration, TheShippedConstantsAreWhatTheFitGives) {
  EXPECT_EQ(print_calibration(table_calibration()), fitted_text());
  EXPECT_EQ(table_calibration().points.size(), 8U);
}

}  // namespace
}  // namespace shardproof::cost
