// The constants of the estimate: their text, and the seconds that they make of the bounds.
#include "engine/cost/work/efficiency.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "tests/engine/cost/cases.h"

namespace shardproof::cost {
namespace {

constexpr Efficiency kHalf{.compute = 0.5, .interconnect = 0.25, .time_of_layer = 0.125};

TEST(Efficiency, EstimateAddsWhatEachPartTakes) {
  const Seconds layer{.compute = 1.0, .memory = 10.0, .communication = 100.0, .hops = 25.0};
  EXPECT_EQ(estimate(layer, kHalf), 2.0 + 10.0 + 400.0 + 25.0);
  const Bounds bounds{.layer = layer, .ends = {.compute = 3.0}, .layers = 8};
  EXPECT_EQ(estimate(bounds, kHalf), 8 * (437.0 + 0.125) + 6.0);
}

TEST(Efficiency, OfAPerfectChipIsTheAdditiveBound) {
  const Seconds part{.compute = 1.0, .memory = 2.0, .communication = 3.0, .hops = 4.0};
  const Bounds bounds{.layer = part, .ends = part, .layers = 5};
  EXPECT_EQ(estimate(bounds, Efficiency{}), bounds.additive());
}

RC_GTEST_PROP(Efficiency, ReadsWhatItPrints, ()) {
  const auto digits = [] { return *rc::gen::inRange(1, 99999); };
  const Efficiency efficiency{
      .compute = digits() / 1e5, .interconnect = digits() / 1e5, .time_of_layer = digits() / 1e9};
  RC_ASSERT(parse_efficiency(print_efficiency(efficiency)) == efficiency);
}

TEST(Efficiency, RefusesOtherTexts) {
  expect_refusals("work/constants.txt", "text",
                  [](const CaseLine& line) { parse_efficiency(line.text(0)); });
  EXPECT_NO_THROW(parse_efficiency("interconnect:1\r\ntime_of_layer:0\r\ncompute : 1 # peak\r\n"));
}

TEST(Efficiency, SaysOnWhichChipsItIsAGuess) {
  EXPECT_EQ(guess_on(find_chip("tpu-v4")), "");
  EXPECT_EQ(guess_on(find_chip("tpu-v4-axes")),
            "constants fitted on tpu-v4; for tpu-v4-axes a guess");
  Chip mine = find_chip("tpu-v4");
  mine.name = "mine";
  EXPECT_EQ(guess_on(mine), "constants fitted on tpu-v4; for mine a guess");
}

TEST(Efficiency, OfThePaperIsInItsRanges) {
  const Efficiency& fitted = fitted_efficiency();
  EXPECT_GT(fitted.compute, 0.5);
  EXPECT_LE(fitted.compute, 1.0);
  EXPECT_GT(fitted.interconnect, 0.0);
  EXPECT_GT(fitted.time_of_layer, 0.0);
}

}  // namespace
}  // namespace shardproof::cost
