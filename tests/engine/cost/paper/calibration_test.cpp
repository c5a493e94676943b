// The fit of the constants: on points that the estimate itself makes, on any, on the paper's.
#include "engine/cost/paper/calibration.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/engine/cost/rounding.h"
#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

/// A whole number of any size of a property.
double whole(int least, int most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, most + 1));
}

/// A point of whole numbers of seconds, of several passes, each measured as a power of two: the
/// normal equations of a few and their determinants are whole numbers below 2^53 over powers of
/// two, and exact, so that of the unknowns 1/compute, 1/interconnect and time_of_layer each is one
/// rounded quotient. What no constant changes, `known`, is the memory's and the hops'.
CalibrationPoint point_of(double compute, double communication, double layers, double known,
                          double seconds) {
  const int passes = static_cast<int>(whole(1, 64));
  const double hops = whole(0, static_cast<int>(known));
  return {.name = "",
          .bounds = {.layer = {},
                     .ends = {.compute = compute,
                              .memory = known - hops,
                              .communication = communication,
                              .hops = hops},
                     .layers = static_cast<int>(layers)},
          .passes = passes,
          .seconds = passes * seconds};
}

/// The length of the residuals: the root of the sum of their squares.
double length(const std::vector<CalibrationPoint>& points, const Efficiency& efficiency) {
  double sum = 0.0;
  for (const CalibrationPoint& point : points) sum += std::pow(point.residual(efficiency), 2);
  return std::sqrt(sum);
}

RC_GTEST_PROP(Calibration, FindsTheConstantsThatTheTimesWereMadeWith, ()) {
  const double compute = whole(1, 4), communication = whole(1, 4), layer = whole(0, 3);
  std::vector<CalibrationPoint> points;
  const auto add = [&](double c, double i, double layers) {
    points.push_back(
        point_of(c, i, layers, 256.0 - compute * c - communication * i - layer * layers, 256.0));
  };
  add(whole(1, 15), 0.0, 0.0);
  add(0.0, whole(1, 15), 0.0);
  add(0.0, 0.0, whole(1, 15));
  for (double more = whole(0, 6); more > 0.0; --more) add(whole(0, 15), whole(0, 15), whole(0, 15));
  RC_ASSERT(fit(points) == (Efficiency{1.0 / compute, 1.0 / communication, layer}));
}

/// Whatever the times are: no constants in their ranges are better. What rounds are the unknowns,
/// by a share of u each, which moves a residual by u times the residual + 1 at most; their
/// reciprocals; and four lengths, here the fit's and the other's, in the fit its own and that of
/// what it would have found but for rounding. A length is a sum of m squares and its root, of
/// residuals of fewer than 20 operations each, whose terms are positive but the -1.
RC_GTEST_PROP(Calibration, NoOtherConstantsAreBetter, ()) {
  std::vector<CalibrationPoint> points;
  for (double more = whole(4, 9); more > 0.0; --more)
    points.push_back(
        point_of(whole(0, 15), whole(0, 15), whole(0, 15), whole(0, 15), std::exp2(whole(3, 5))));
  const Efficiency found = fit(points);
  RC_ASSERT(found.compute > 0.0 && found.compute <= 1.0);
  RC_ASSERT(found.interconnect > 0.0 && found.interconnect <= 1.0);
  RC_ASSERT(found.time_of_layer >= 0.0);
  const double least = length(points, found);
  for (int i = 0; i < 20; ++i) {
    const auto near = [](double value) { return value * whole(80, 125) / 100.0; };
    const Efficiency other{
        .compute = std::min(1.0, near(found.compute)),
        .interconnect = std::min(1.0, near(found.interconnect)),
        .time_of_layer = near(found.time_of_layer) + *rc::gen::element(0.0, 0.01, 1.0)};
    const double reached = length(points, other);
    const int operations = static_cast<int>(points.size()) + 30;
    RC_ASSERT(least <= reached + 5.0 * rounding_share(operations) *
                                     (reached + std::sqrt(static_cast<double>(points.size()))));
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
  EXPECT_EQ(label_of([&] { fit(points); }), "calibration_c1");
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
