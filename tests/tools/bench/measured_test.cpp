#include "tools/bench/measured.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <stdexcept>

namespace shardproof::bench {
namespace {

/// Measures nothing: its figures are given, over and over.
Row given(std::vector<Cost> figures, Decides decides, std::optional<Target> target = {}) {
  return {.id = "given",
          .group = "figures",
          .what = "given",
          .target = target,
          .decides = decides,
          .start = [=]() -> std::function<Sample()> {
            return [=, next = std::size_t{0}]() mutable {
              return Sample{{1.0, 1.0}, {}, figures[next++ % figures.size()]};
            };
          }};
}

TEST(Measured, EndsWhenItsSpreadIsReached) {
  const Patience patience{20, 0.03};
  EXPECT_EQ(measure(given({{1.0, 1.0}}, Decides::processor), patience).samples.size(), 5U);
  const Measured wild = measure(given({{1.0, 1.0}, {2.0, 1.0}}, Decides::processor), patience);
  EXPECT_EQ(wild.samples.size(), 20U);
  EXPECT_FALSE(wild.steady(patience));
  // By the wall clock these agree.
  EXPECT_EQ(measure(given({{1.0, 1.0}, {2.0, 1.0}}, Decides::wall), patience).samples.size(), 5U);
  EXPECT_EQ(measure(given({{1.0, 1.0}, {2.0, 1.0}}, Decides::both), patience).samples.size(), 20U);
  Row once = given({{1.0, 1.0}, {2.0, 1.0}}, Decides::both);
  once.once = true;
  EXPECT_EQ(measure(once, patience).samples.size(), 1U);
}

TEST(Measured, IsMetByTheClockThatDecides) {
  const auto verdict = [](Cost figure, Decides decides, Target target) {
    return measure(given({figure}, decides, target), {}).verdict();
  };
  EXPECT_EQ(verdict({2.0, 9.0}, Decides::processor, {2.0}), "met");
  EXPECT_EQ(verdict({2.1, 1.0}, Decides::processor, {2.0}), "missed");
  EXPECT_EQ(verdict({2.1, 1.0}, Decides::wall, {2.0}), "met");
  EXPECT_EQ(verdict({2.1, 1.0}, Decides::both, {2.0}), "missed");
  EXPECT_EQ(verdict({1.0, 2.1}, Decides::both, {2.0}), "missed");
  EXPECT_EQ(verdict({1.0, 1.9}, Decides::both, {2.0}), "met");
  EXPECT_EQ(verdict({2.1, 2.0}, Decides::both, {2.0, true}), "met");
  EXPECT_EQ(verdict({2.1, 1.9}, Decides::both, {2.0, true}), "missed");
  EXPECT_EQ(verdict({2.0, 9.0}, Decides::neither, {2.0}), "met");
  EXPECT_EQ(verdict({2.1, 1.0}, Decides::neither, {2.0}), "missed");
  EXPECT_EQ(measure(given({{1.0, 1.0}}, Decides::both), {}).verdict(), "");
}

TEST(Measured, WhatCannotBeMeasuredSaysWhy) {
  Row row = given({{1.0, 1.0}}, Decides::both, Target{2.0});
  row.start = []() -> std::function<Sample()> { throw std::runtime_error("no such program"); };
  const Measured failed = measure(row, {});
  EXPECT_EQ(failed.verdict(), "failed");
  EXPECT_EQ(failed.error, "no such program");
  // A row that fails when it is repeated has no figure either.
  row.start = []() -> std::function<Sample()> {
    return [count = 0]() mutable {
      if (count++ == 3) throw std::runtime_error("not equal");
      return Sample{};
    };
  };
  EXPECT_EQ(measure(row, {}).verdict(), "failed");
}

TEST(Measured, IsTheMedianOfRatiosNotOfTheirSides) {
  Row row = given({{1.0, 1.0}}, Decides::processor);
  row.start = []() -> std::function<Sample()> {
    return [count = 0]() mutable {
      const double slow = ++count % 2 == 0 ? 10.0 : 1.0;
      return Sample::ratio({3.0 * slow, slow}, {slow, slow});
    };
  };
  const Measured measured = measure(row, {});
  EXPECT_EQ(measured.figure().processor, 3.0);
  EXPECT_EQ(measured.figure_spread(), 0.0);
  ASSERT_TRUE(measured.theirs());
  EXPECT_EQ(measured.theirs()->processor, 1.0);
}

}  // namespace
}  // namespace shardproof::bench
