#include "tools/drawing/log_axis.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

TEST(LogAxis, PutsEqualRatiosEquallyFarApart) {
  for (const auto& [from, to] : {std::pair{0.0, 100.0}, std::pair{300.0, 20.0}}) {
    const LogAxis axis(0.5, 800, from, to);
    EXPECT_NEAR(axis.at(10) - axis.at(1), axis.at(100) - axis.at(10), 1e-9);
    EXPECT_NEAR(axis.at(2) - axis.at(1), axis.at(14) - axis.at(7), 1e-9);
    // All of it lies inside, and a little is left free.
    EXPECT_GT((axis.at(0.5) - from) / (to - from), 0.0);
    EXPECT_LT((axis.at(800) - from) / (to - from), 1.0);
    EXPECT_LT(axis.at(0.5) / (to - from), axis.at(800) / (to - from));
  }
}

TEST(LogAxis, HasFewTicks) {
  EXPECT_EQ(LogAxis(2.5, 1500, 0, 1).ticks(), (std::vector<double>{10, 100, 1000}));
  EXPECT_EQ(LogAxis(1.5, 30, 0, 1).ticks(), (std::vector<double>{2, 5, 10, 20}));
  EXPECT_EQ(LogAxis(2.8, 4.4, 0, 1).ticks(), (std::vector<double>{3, 4, 5}));
  EXPECT_FALSE(LogAxis(7, 7, 0, 1).ticks().empty()) << "one number is a range, too";
}

}  // namespace
}  // namespace shardproof
