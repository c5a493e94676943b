#include "engine/cost/plan/frontier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace shardproof::cost {
namespace {

Choice point(int chips, std::int64_t batch, double latency, double cost,
             NumberFormat weights = NumberFormat::int8) {
  Choice choice;
  choice.decode = Candidate();
  choice.decode->torus = Torus(chips, 1, 1);
  choice.decode->batch = batch;
  choice.decode->weights = weights;
  choice.latency = latency;
  choice.cost = cost;
  return choice;
}

TEST(Frontier, HasTheFastestOfEach) {
  const std::vector<Choice> all{point(4, 1, 3, 5), point(4, 1, 2, 9), point(4, 1, 2, 8),
                                point(4, 2, 7, 7), point(4, 1, 1, 1, NumberFormat::bf16)};
  const std::vector<const Choice*> fastest = fastest_of_each(all, false);
  ASSERT_EQ(fastest.size(), 3U);
  EXPECT_TRUE(fastest_of_each(all, true).empty());
  EXPECT_TRUE(std::find(fastest.begin(), fastest.end(), &all[2]) != fastest.end());
}

/// A point is on it unless another is as fast and as cheap, and one of them more so.
TEST(Frontier, IsWhatNothingDominates) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<Choice> all;
    const std::size_t count = 1 + random() % 30;
    for (std::size_t n = 0; n < count; ++n)
      all.push_back(point(1, static_cast<std::int64_t>(n + 1),
                          static_cast<double>(1 + random() % 9),
                          static_cast<double>(1 + random() % 9)));
    std::vector<const Choice*> points;
    for (const Choice& choice : all) points.push_back(&choice);
    const std::vector<const Choice*> best = frontier(points);
    std::set<std::pair<double, double>> found, expected;
    for (const Choice* one : best) found.insert({one->latency, one->cost});
    EXPECT_EQ(found.size(), best.size()) << "of equals one";
    for (const Choice& a : all)
      if (std::none_of(all.begin(), all.end(), [&](const Choice& b) {
            return b.latency <= a.latency && b.cost <= a.cost &&
                   (b.latency < a.latency || b.cost < a.cost);
          }))
        expected.insert({a.latency, a.cost});
    EXPECT_EQ(found, expected);
    for (std::size_t n = 1; n < best.size(); ++n) {
      EXPECT_LT(best[n - 1]->latency, best[n]->latency);
      EXPECT_GT(best[n - 1]->cost, best[n]->cost);
    }
  }
}

}  // namespace
}  // namespace shardproof::cost
