// The rule of all verdicts, and that what is not a number is never a reason to accept.
#include "golden/bounds/number/fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "golden/bounds/number/interval_tensor.h"

namespace shardproof::bounds {
namespace {

TEST(FitOf, GoesByTheRule) {
  const auto of = [](double worst, double likely, double found) {
    return fit_of({.worst = worst, .likely = likely, .found = found, .scale = 1.0});
  };
  EXPECT_EQ(of(0.0, 0.0, 0.0), Fit::within);
  EXPECT_EQ(of(0.01, 0.01, 0.01), Fit::within);
  EXPECT_EQ(of(0.0101, 0.01, 0.01), Fit::likely_within);
  EXPECT_EQ(of(0.0101, 0.0101, 0.01), Fit::near);
  EXPECT_EQ(of(0.5, 0.5, 0.0101), Fit::loose);
  EXPECT_EQ(of(0.999, 0.999, 0.5), Fit::loose);
  EXPECT_EQ(of(1.0, 1.0, 0.5), Fit::not_judged);
  EXPECT_EQ(of(1.0, 0.5, 0.5), Fit::not_judged);
  EXPECT_EQ(of(1e6, 1e6, 0.01), Fit::near);  // by fact
  Extent unlikely{.outside_likely = true, .worst = 1e-3, .likely = 1e-4, .found = 2e-4, .scale = 1};
  EXPECT_EQ(fit_of(unlikely), Fit::unlikely);
  unlikely.outside = true;
  EXPECT_EQ(fit_of(unlikely), Fit::different);
}

TEST(FitOf, AcceptsNothingThatIsNoNumber) {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)})
    for (const double scale : {0.0, 1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      EXPECT_EQ(fit_of({.worst = bad, .likely = bad, .found = bad, .scale = scale}),
                Fit::not_judged);
      EXPECT_EQ(fit_of({.worst = bad, .likely = bad, .found = 0.5, .scale = scale}),
                Fit::not_judged);
    }
  EXPECT_EQ(farther(0.0, NAN), kInfinity);
  EXPECT_EQ(farther(NAN, 1.0), kInfinity);
  EXPECT_EQ(farther(2.0, 1.0), 2.0);
  IntervalTensor x(Shape{1});
  for (const Number& bad : {Number{NAN, 0.0, 0.0}, Number{1.0, NAN, 0.0}, Number{1.0, NAN, NAN},
                            Number{1.0, INFINITY, 0.0}}) {
    x.set(0, bad);
    EXPECT_EQ(x.radius[0], kInfinity);
    EXPECT_EQ(x.likely[0], kInfinity);
  }
  x.set(0, Number{1.0, 0.5, NAN});
  EXPECT_EQ(x.likely[0], 0.5);
}

TEST(Words, AreReadBack) {
  for (const Fit fit : {Fit::equal, Fit::within, Fit::likely_within, Fit::near, Fit::loose,
                        Fit::unlikely, Fit::different, Fit::not_judged})
    EXPECT_EQ(parse_fit(to_string(fit)), fit);
  EXPECT_FALSE(parse_fit("right"));
  EXPECT_FALSE(parse_fit(""));
}

}  // namespace
}  // namespace shardproof::bounds
