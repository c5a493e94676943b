#include "tools/plan/plan_chart.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/drawing/document.h"

namespace shardproof::tools {
namespace {

ChartPanel panel(const char* title) {
  ChartSeries int8{"int8", {}, {}}, bf16{"bf16", {}, {}};
  for (int i = 1; i <= 12; ++i) {
    const ChartPoint point{0.01 * i, 2.0 / i, std::to_string(i) + " chips", "<a & \"b\">"};
    (i % 2 == 0 ? int8 : bf16).points.push_back(point);
    (i % 2 == 0 ? int8 : bf16).frontier.push_back(point);
  }
  return {title, "latency of a step", {int8, bf16}};
}

TEST(PlanChart, IsAWellFormedPicture) {
  const Document picture(plan_chart({panel("Prefill"), panel("Decode")}, "A & B", {"a <note>"}));
  std::string texts;
  int polylines = 0;
  visit(picture.root(), [&](const Xml& e) {
    const std::string name = e.name();
    if (name == "text") texts += std::string(e.text().get()) + "\n";
    if (name == "path" && attribute(e, "stroke-width") == "1.4") ++polylines;
  });
  for (const char* part : {"A & B", "a <note>", "Prefill", "Decode", "int8 weights", "bf16 weights",
                           "latency of a step", "chip-seconds a token", "1 chips", "12 chips"})
    EXPECT_NE(texts.find(part), std::string::npos) << part << "\n" << texts;
  EXPECT_EQ(polylines, 4) << "a line for each series of each panel";
}

TEST(PlanChart, LeavesOutWhatHasNoPoints) {
  ChartPanel empty = panel("Prefill");
  for (ChartSeries& series : empty.series) series = {series.name, {}, {}};
  const std::string picture = plan_chart({empty, panel("Decode")}, "t", {});
  EXPECT_EQ(picture.find("Prefill"), std::string::npos);
  EXPECT_NE(picture.find("Decode"), std::string::npos);
}

TEST(PlanChart, IsAPageThatNeedsNothingBesides) {
  const std::string page = plan_page({panel("Decode")}, "A & B", {});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(page.find("<title>A &amp; B</title>"), std::string::npos);
  for (const char* loaded : {"<script", "<link", "<img", "url(", "@import", "<?xml", "href"})
    EXPECT_EQ(page.find(loaded), std::string::npos) << loaded;
}

}  // namespace
}  // namespace shardproof::tools
