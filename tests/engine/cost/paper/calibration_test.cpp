// The fit of the constants: on points that the estimate itself makes, on any, on the paper's.
#include "engine/cost/paper/calibration.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/engine/cost/rounding.h"
#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

/// At every size of a property's values from all of the range: of points that are alike no fit can
/// tell the constants.
double drawn(double least, double most) {
  const int share = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 10001));
  return least + (most - least) * share / 1e4;
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

/// The length of the residuals: the root of the sum of their squares.
double length(const std::vector<CalibrationPoint>& points, const Efficiency& efficiency) {
  double sum = 0.0;
  for (const CalibrationPoint& point : points) sum += std::pow(point.residual(efficiency), 2);
  return std::sqrt(sum);
}

/// Of 1/compute, 1/interconnect and time_of_layer, the unknowns that residuals are linear in.
using Unknown3 = std::array<double, 3>;
using Rows3 = std::array<Unknown3, 3>;

/// The determinant; with sign 1 the sum of the sizes of all products in it.
double determinant_of(const Rows3& m, double sign = -1.0) {
  return m[0][0] * (m[1][1] * m[2][2] + sign * m[1][2] * m[2][1]) +
         m[0][1] * (m[1][2] * m[2][0] + sign * m[1][0] * m[2][2]) +
         m[0][2] * (m[1][0] * m[2][1] + sign * m[1][1] * m[2][0]);
}

/// A residual as a sum: `of` times the unknowns, less `less`, a difference of terms of this size.
struct ResidualTerms {
  Unknown3 of;
  double less, size;
};

std::vector<ResidualTerms> terms_of(const std::vector<CalibrationPoint>& points) {
  std::vector<ResidualTerms> terms;
  for (const CalibrationPoint& point : points) {
    const Seconds total = point.bounds.total();
    const double each = point.passes / point.seconds, known = (total.memory + total.hops) * each;
    terms.push_back({{total.compute * each, total.communication * each, point.bounds.layers * each},
                     1.0 - known,
                     1.0 + known});
  }
  return terms;
}

/// A fit has no more rounded operations than this, one after another. The normal equations of m
/// points: a coefficient has 5, its product with another or with what is left 12, a sum over points
/// 3m more, where unknowns are held; the determinant three such factors and 5 more. A residual has
/// fewer than 20, and the length of all m + 3 more.
int operations_of_fit(const std::vector<CalibrationPoint>& points) {
  return 9 * static_cast<int>(points.size()) + 48;
}

/// How far rounding takes the unknowns from the least squares where those of the set `held` are at
/// their bounds, the least that each can be. With D the determinant of the normal equations, D_i
/// that with their right side as column i, and P and P_i the sums of the sizes of the products in
/// them, an unknown is x = D_i/D. Coefficients are not negative, so that no sum of the equations
/// cancels but that of the right side, whose size is summed beside it; so D is off by share·P at
/// most, D_i by share·P_i, and their quotient by share·(P_i + |x|·P)/|D|. That counts |x|·P/|D| ≥
/// |x| twice below, for the quotient itself and for its reciprocal.
Unknown3 rounding_of_unknowns(const std::vector<ResidualTerms>& terms, unsigned held,
                              double share) {
  constexpr Unknown3 kBounds{1.0, 1.0, 0.0};
  const auto is_held = [&](std::size_t i) { return (held >> i & 1U) != 0; };
  Rows3 rows{};
  Unknown3 right{}, size{};
  for (std::size_t i = 0; i < 3; ++i) {
    rows.at(i).at(i) = is_held(i) ? 1.0 : 0.0;
    if (is_held(i)) continue;
    for (const ResidualTerms& t : terms) {
      right.at(i) += t.of.at(i) * t.less;
      size.at(i) += t.of.at(i) * t.size;
      for (std::size_t j = 0; j < 3; ++j) {
        const double product = t.of.at(i) * t.of.at(j);
        if (!is_held(j)) {
          rows.at(i).at(j) += product;
        } else {
          right.at(i) -= product * kBounds.at(j);
          size.at(i) += product * kBounds.at(j);
        }
      }
    }
  }
  const double P = determinant_of(rows, 1.0);
  const double D = std::abs(determinant_of(rows)) - share * P;  // at least
  Unknown3 off{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (is_held(i)) continue;
    Rows3 with_right = rows, with_size = rows;
    for (std::size_t row = 0; row < 3; ++row) {
      with_right.at(row).at(i) = right.at(row);
      with_size.at(row).at(i) = size.at(row);
    }
    const double P_i = determinant_of(with_size, 1.0);
    const double x = (std::abs(determinant_of(with_right)) + share * P_i) / D;  // at most
    off.at(i) = D > 0.0 ? share * (P_i + 2.0 * x * P) / D : std::numeric_limits<double>::infinity();
  }
  return off;
}

/// By how much more the sum of squares at what the equations give can be than the least in the
/// ranges, for all that rounding does to the unknowns. With A the coefficients and e how far
/// unknowns are off at most, whatever is held, that sum is the least plus |Ae|², for at the least
/// its slope is 0. What is legal by less than e may look illegal, and is then held at its bound:
/// that costs (A_i·e_i)² at most, once for each unknown, together no more than |Ae|² again.
double rounding_of_squares(const std::vector<CalibrationPoint>& points) {
  const std::vector<ResidualTerms> terms = terms_of(points);
  Unknown3 off{};
  for (unsigned held = 0; held < 8; ++held) {
    const Unknown3 of_held =
        rounding_of_unknowns(terms, held, rounding_share(operations_of_fit(points)));
    for (std::size_t i = 0; i < 3; ++i) off.at(i) = std::max(off.at(i), of_held.at(i));
  }
  double squares = 0.0;
  for (const ResidualTerms& t : terms) {
    double moved = 0.0;
    for (std::size_t i = 0; i < 3; ++i) moved += t.of.at(i) * off.at(i);
    squares += moved * moved;
  }
  return 2.0 * squares;
}

/// The most that the length of the residuals of a fit can be, where other constants in their ranges
/// reach that of `other`. Each term of a residual is positive but the -1, so that their sizes are
/// the residual + 2, the length of all sizes at most that of the residuals + 2·sqrt(m), and a
/// length is off by half the share of that, and by half its own share: by share·(length + sqrt(m)).
/// Four lengths are compared: here the fit's and the other's, in the fit its own and that of what
/// it would have found but for rounding.
double longest_of_fit(const std::vector<CalibrationPoint>& points, const Efficiency& other) {
  const double reached = std::hypot(length(points, other), std::sqrt(rounding_of_squares(points)));
  return reached + 4.0 * rounding_share(operations_of_fit(points)) *
                       (reached + std::sqrt(static_cast<double>(points.size())));
}

RC_GTEST_PROP(Calibration, FindsTheConstantsThatTheTimesWereMadeWith, ()) {
  const Efficiency made{.compute = drawn(0.3, 1.0),
                        .interconnect = drawn(0.1, 1.0),
                        .time_of_layer = drawn(0.0, 1e-4)};
  std::vector<CalibrationPoint> points = drawn_points();
  for (CalibrationPoint& point : points) point.seconds = point.estimated(made);
  const double most = longest_of_fit(points, made);
  RC_PRE(std::isfinite(most));  // or the points are alike but for rounding
  RC_ASSERT(length(points, fit(points)) <= most);
}

/// Whatever the times are: no constants in their ranges are better.
RC_GTEST_PROP(Calibration, NoOtherConstantsAreBetter, ()) {
  const std::vector<CalibrationPoint> points = drawn_points();
  const Efficiency found = fit(points);
  RC_ASSERT(found.compute > 0.0 && found.compute <= 1.0);
  RC_ASSERT(found.interconnect > 0.0 && found.interconnect <= 1.0);
  RC_ASSERT(found.time_of_layer >= 0.0);
  const double least = length(points, found);
  for (int i = 0; i < 20; ++i) {
    const Efficiency other{.compute = std::min(1.0, found.compute * drawn(0.8, 1.25)),
                           .interconnect = std::min(1.0, found.interconnect * drawn(0.8, 1.25)),
                           .time_of_layer = found.time_of_layer * drawn(0.8, 1.25) +
                                            *rc::gen::element(0.0, drawn(0.0, 1e-5))};
    const double most = longest_of_fit(points, other);
    RC_PRE(std::isfinite(most));
    RC_ASSERT(least <= most);
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
