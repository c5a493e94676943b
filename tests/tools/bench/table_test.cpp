#include "tools/bench/table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

namespace shardproof::bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Measured measured(Unit unit, Cost ours, Cost figure, std::optional<Target> target) {
  Row row{.id = "a/b", .group = "a", .what = "b", .target = target, .unit = unit};
  return {row, std::vector<Sample>(5, Sample{ours, {}, figure})};
}

std::size_t widest(const std::string& text) {
  std::istringstream lines(text);
  std::size_t most = 0;
  for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
  return most;
}

TEST(Figure, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(figure_text(0.9712, Unit::ratio), "0.97");
  EXPECT_EQ(figure_text(12.34, Unit::ratio), "12.3");
  EXPECT_EQ(figure_text(123.4, Unit::ratio), "123");
  EXPECT_EQ(figure_text(0.0000123, Unit::seconds), "12.3us");
  EXPECT_EQ(figure_text(0.04, Unit::seconds), "40.0ms");
  EXPECT_EQ(figure_text(91.0, Unit::seconds), "91.0s");
  EXPECT_EQ(figure_text(1.5372e9, Unit::bytes), "1.54GB");
  EXPECT_EQ(figure_text(28.1e6, Unit::bytes), "28.1MB");
  EXPECT_EQ(figure_text(15000.4, Unit::per_minute), "15000");
  EXPECT_EQ(figure_text(0.853, Unit::share), "85.3%");
  EXPECT_EQ(figure_text(kNone, Unit::bytes), "");
}

TEST(Table, StatesFigureTargetAndVerdict) {
  const std::string text = table({measured(Unit::ratio, {0.1, 0.2}, {1.5, 1.4}, Target{1.2}),
                                  measured(Unit::bytes, {1.0, 1.0}, {3e8, kNone}, Target{0.4e9}),
                                  measured(Unit::per_minute, {1.0, 1.0}, {9.0, 9.0}, {})},
                                 {});
  EXPECT_EQ(text,
            "                                       ours      figure by\n"
            "                                cpu    wall     cpu   wall  target        spread\n"
            "a [cpu]\n"
            "  b                           100ms   200ms    1.50   1.40   <=1.2 missed   0.0%\n"
            "  b                           1.00s   1.00s  0.30GB        <=0.4GB met      0.0%\n"
            "  b                           1.00s   1.00s       9      9                  0.0%\n");
}

TEST(Table, SaysWhatFailedAndWhatDidNotSettle) {
  Measured failed = measured(Unit::ratio, {}, {}, Target{1.2});
  failed.samples.clear();
  failed.error = "no such program";
  Measured few = measured(Unit::ratio, {1.0, 1.0}, {1.0, 1.0}, {});
  few.samples.resize(2);
  const std::string text = table({failed, few}, {});
  EXPECT_NE(text.find("<=1.2 failed"), std::string::npos) << text;
  EXPECT_NE(text.find("a/b failed: no such program\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" ?*\n* still above 3 % after"), std::string::npos) << text;
}

RC_GTEST_PROP(Table, IsEightyColumnsWide, ()) {
  const auto unit =
      *rc::gen::element(Unit::ratio, Unit::bytes, Unit::seconds, Unit::per_minute, Unit::share);
  const auto any = [&] { return std::pow(10.0, *rc::gen::inRange(-60, 30) / 10.0); };
  const double scale = unit == Unit::bytes ? 1e8 : unit == Unit::per_minute ? 10.0 : 1e-2;
  Measured row = measured(unit, {any(), any()}, {any() * scale, any() * scale}, {});
  row.row.what = std::string(26, 'w');
  const std::string text = table({row}, {});
  RC_ASSERT(widest(text) <= 80U);
}

TEST(Table, AsJson) {
  Measured row = measured(Unit::bytes, {1.0, 2.0}, {3e8, kNone}, Target{0.4e9});
  row.others = 0.25;
  const auto read = nlohmann::json::parse(json({row}, {0.5, 0.75, 2, 0.1}));
  EXPECT_EQ(read["load"]["after"], 0.75);
  const auto& shown = read["rows"][0];
  EXPECT_EQ(shown["id"], "a/b");
  EXPECT_EQ(shown["figure"]["processor"], 3e8);
  EXPECT_TRUE(shown["figure"]["wall"].is_null());
  EXPECT_EQ(shown["target"]["at_most"], 0.4e9);
  EXPECT_EQ(shown["verdict"], "met");
  EXPECT_EQ(shown["unit"], "bytes");
  EXPECT_EQ(shown["others"], 0.25);
  EXPECT_FALSE(shown.contains("theirs"));
}

}  // namespace
}  // namespace shardproof::bench
