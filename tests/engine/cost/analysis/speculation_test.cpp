#include "engine/cost/analysis/speculation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>

#include "tests/engine/cost/cases.h"
#include "tests/engine/cost/rounding.h"

namespace shardproof::cost {
namespace {

TEST(Speculation, IsCountedByHand) {
  EXPECT_DOUBLE_EQ(tokens_of_round({0.5, 0.1, 1.0}, 1), 1.5);
  EXPECT_DOUBLE_EQ(tokens_of_round({0.5, 0.1, 1.0}, 3), 1.875);
  EXPECT_DOUBLE_EQ(speed_up({0.5, 0.1, 1.0}, 3), 1.875 / 1.3);
  EXPECT_DOUBLE_EQ(speed_up({0.5, 0.1, 1.5}, 3), 1.875 / 1.8);
  EXPECT_EQ(tokens_of_round({1.0, 0.1, 1.0}, 7), 8.0);
  EXPECT_EQ(tokens_of_round({0.0, 0.1, 1.0}, 7), 1.0);
  EXPECT_EQ(best_gamma({0.8, 0.05, 1.0}, 64), 8);
  EXPECT_EQ(best_gamma({0.0, 0.05, 1.0}, 64), 1);   // it never pays: the least
  EXPECT_EQ(best_gamma({1.0, 0.05, 1.0}, 64), 64);  // it pays without end
}

RC_GTEST_PROP(Speculation, TokensAreThoseOfEveryWayARoundCanGo, ()) {
  const int percent = *rc::gen::inRange(0, 101);
  // Near 1 as well, where 1 − a^n is a small difference.
  const double a = *rc::gen::element(percent / 100.0, 1.0 - percent * 0x1p-50);
  const int gamma = *rc::gen::inRange(1, 20);
  // The first i are accepted and the next is not: i + 1 tokens; or all are, and there is one more.
  double tokens = (gamma + 1) * std::pow(a, gamma);
  for (int i = 0; i < gamma; ++i) tokens += (i + 1) * std::pow(a, i) * (1.0 - a);
  // A term is a power, a difference of numbers as they are and two products, 5 operations, in a sum
  // of gamma more. The closed form has a logarithm, a product, expm1, a difference and a quotient,
  // 7 operations; expm1(y) is off by no larger share than y below 0.
  RC_ASSERT(equal_but_for_rounding(tokens_of_round({a, 0.0, 1.0}, gamma), tokens, gamma + 7));
}

RC_GTEST_PROP(Speculation, TheBestGammaIsBetterThanAnyOther, ()) {
  const Speculation s{*rc::gen::inRange(0, 101) / 100.0, *rc::gen::inRange(0, 51) / 100.0, 1.0};
  const std::int64_t best = best_gamma(s, 30);
  for (std::int64_t gamma = 1; gamma <= 30; ++gamma)
    RC_ASSERT(speed_up(s, gamma) <= speed_up(s, best));
}

TEST(Speculation, RefusesWhatIsNoChance) {
  expect_refusals("analysis/refused.txt", "speculation", [](const CaseLine& line) {
    speed_up({line.number(0), line.number(1), line.number(2)}, line.whole(3));
  });
}

}  // namespace
}  // namespace shardproof::cost
