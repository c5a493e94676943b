// The paper's numbers beside the model's: how rows are judged, and that what must hold holds.
#include "engine/cost/paper/comparison.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/cost/paper/calibration.h"
#include "engine/cost/paper/detail/comparison_rows.h"
#include "engine/cost/paper/published.h"
#include "tests/weights/expect_error.h"

namespace shardproof::cost {
namespace {

TEST(Published, PrintedNumbersRoundByTheirDigits) {
  const Printed two{"0.29"}, whole{"43"}, thousands{"43000"}, zero{"6.0"};
  EXPECT_EQ(two.value(), 0.29);
  EXPECT_EQ(two.half_unit(), 0.005);
  EXPECT_EQ(whole.half_unit(), 0.5);
  EXPECT_EQ(thousands.value(), 43000.0);
  EXPECT_EQ(zero.half_unit(), 0.05);
  EXPECT_TRUE(two.rounds(0.2949));
  EXPECT_TRUE(two.rounds(0.295));
  EXPECT_FALSE(two.rounds(0.2951));
  EXPECT_FALSE(whole.rounds(42.4));
  EXPECT_TRUE(whole.rounds(42.6));
}

/// Every number of the data is one that can be read, above 0.
TEST(Published, NumbersAreNumbers) {
  std::vector<Printed> all;
  for (const ContextRow& r : table_1()) all.insert(all.end(), {r.batch_128, r.batch_512});
  for (const MeasuredPass& r : tables_2_and_3()) all.insert(all.end(), {r.mfu, r.seconds});
  for (const VolumeRow& r : figure_3()) all.insert(all.end(), {r.ws, r.wg_x, r.wg_xy, r.wg_xyz});
  for (const CrossoverRow& r : figure_3_crossovers()) all.push_back(r.tokens);
  for (const StationaryRow& r : figure_6()) all.insert(all.end(), {r.ws2d, r.ws1d});
  for (const PrefillRow& r : figure_7()) all.insert(all.end(), {r.ws2d, r.wg_xyz});
  for (const AttentionRow& r : figure_8()) all.insert(all.end(), {r.batch, r.heads, r.multihead});
  for (const ParametersRow& r : parameter_counts()) all.push_back(r.billions);
  for (const Headline& r : headlines()) all.push_back(r.number);
  for (const BestXRow& r : best_x_rows()) all.push_back(r.X);
  for (const BestGatheredRow& r : best_gathered_rows()) all.push_back(r.N);
  EXPECT_EQ(all.size(), 99U);
  for (const Printed& one : all) {
    EXPECT_GT(one.value(), 0.0) << one.text;
    EXPECT_EQ(one.text.find_first_not_of("0123456789."), std::string_view::npos) << one.text;
  }
}

TEST(Published, ToriAreThoseOfTheReleasedCode) {
  for (const MeasuredPass& pass : tables_2_and_3()) {
    const Torus torus = Torus::parse(pass.torus);
    EXPECT_EQ(torus, released_torus(torus.chips())) << pass.table << " " << pass.column;
  }
  for (const int chips : {1, 4, 8, 16, 32, 64, 128, 256, 512})
    EXPECT_EQ(released_torus(chips).chips(), chips);
  EXPECT_EQ(label_of([] { released_torus(3); }), "published_c1");
}

TEST(ComparedRows, AreJudgedByWhatIsAskedOfThem) {
  const Printed three{"3.0"};
  EXPECT_EQ(exact_row("", three, 3.0).verdict, Verdict::exact);
  EXPECT_EQ(exact_row("", three, 3.0 + 1e-15).verdict, Verdict::failed);
  EXPECT_EQ(rounded_row("", three, 3.04).verdict, Verdict::rounding);
  EXPECT_EQ(rounded_row("", three, 3.06).verdict, Verdict::failed);
  EXPECT_EQ(rounded_row("", three, 3.2, 3.06, 3.3).verdict, Verdict::failed);
  EXPECT_EQ(rounded_row("", three, 3.2, 3.04, 3.3).verdict, Verdict::rounding);
  EXPECT_EQ(percent_row("", three, 3.0 * 1.0199).verdict, Verdict::percent);
  EXPECT_EQ(percent_row("", three, 3.0 * 1.0201).verdict, Verdict::failed);
  EXPECT_EQ(percent_row("", three, 3.0 * 0.9799).verdict, Verdict::failed);
  EXPECT_EQ(choice_row("", "a", "a", "why").verdict, Verdict::holds);
  EXPECT_EQ(choice_row("", "a", "a", "why").why, "");
  EXPECT_EQ(choice_row("", "a", "b").verdict, Verdict::failed);
  EXPECT_EQ(choice_row("", "a", "b", "why").verdict, Verdict::unexplained);
  EXPECT_EQ(choice_row("", "a", "b", "why").why, "why");
  const double near = table_calibration().worst_left_out();
  EXPECT_EQ(estimate_row("", three, 3.0 * (1 + 0.999 * near)).verdict, Verdict::near);
  EXPECT_EQ(estimate_row("", three, 3.0 * (1 - 1.001 * near)).verdict, Verdict::failed);
  EXPECT_EQ(estimate_row("", three, 3.0 * (1 + 1.001 * near), "why").verdict, Verdict::unexplained);
  EXPECT_EQ(lesser({"a", 1.0}, {"b", 2.0}), "a");
  EXPECT_EQ(lesser({"a", 2.0}, {"b", 1.0}), "b");
}

/// "section what" of each row that is neither right nor near, with its verdict.
std::map<std::string, Verdict> apart(const Efficiency& efficiency) {
  std::map<std::string, Verdict> rows;
  for (const std::string& name : section_names())
    for (const ComparedRow& row : compared(name, efficiency).rows)
      if (row.verdict == Verdict::unexplained || row.verdict == Verdict::failed)
        rows.emplace(name + " " + row.what, row.verdict);
  return rows;
}

/// What the model does not explain, all of it: a row that comes or goes is a change to look at.
TEST(Comparison, LeavesTheseRowsUnexplained) {
  std::set<std::string> rows;
  for (const auto& [row, verdict] : apart(fitted_efficiency())) {
    EXPECT_EQ(verdict, Verdict::unexplained) << row;
    rows.insert(row);
  }
  EXPECT_EQ(rows, (std::set<std::string>{
                      "volumes 62B high-throughput decode", "layouts 540B high-throughput prefill",
                      "layouts 62B high-throughput decode", "figure-6 64 chips, 1D",
                      "figure-8 128, heads", "figure-8 128, batch or heads",
                      "figure-8 128, batch or multihead", "figure-8 128, heads or multihead",
                      "figure-8 512, heads or multihead", "figure-8 2048, multihead",
                      "figure-8 2048, heads or multihead", "figure-8 8192, multihead",
                      "figure-8 8192, heads or multihead"}));
}

TEST(Comparison, HasARowForEveryPublishedNumber) {
  std::map<std::string, std::size_t> rows;
  for (const std::string& name : section_names()) {
    const ComparedSection section = compared(name);
    EXPECT_EQ(section.name, name);
    EXPECT_NE(section.title, "") << name;
    rows[name] = section.rows.size();
    for (const ComparedRow& row : section.rows)
      EXPECT_EQ(row.why.empty(), row.verdict != Verdict::unexplained) << name << " " << row.what;
  }
  EXPECT_EQ(rows, (std::map<std::string, std::size_t>{{"table-1", 8},
                                                      {"figure-3", 33},
                                                      {"optima", 16},
                                                      {"parameters", 6},
                                                      {"mfu", 9},
                                                      {"cost", 10},
                                                      {"times", 11},
                                                      {"volumes", 8},
                                                      {"layouts", 8},
                                                      {"figure-6", 10},
                                                      {"figure-7", 14},
                                                      {"figure-8", 24},
                                                      {"serial", 3}}));
}

/// The row of a section.
ComparedRow row_of(std::string_view section, std::string_view what) {
  for (const ComparedRow& row : compared(section).rows)
    if (row.what == what) return row;
  ADD_FAILURE() << section << " has no row " << what;
  return {};
}

/// By eye, of each kind.
TEST(Comparison, SaysTheNumbers) {
  EXPECT_EQ(row_of("table-1", "over batch, batch 128").ours, "42653");
  EXPECT_EQ(row_of("figure-3", "wg-xy to wg-xyz, tokens").ours, "786432");
  EXPECT_EQ(row_of("parameters", "palm-540b,V=256000").ours, "540.354");
  EXPECT_EQ(row_of("mfu", "540B high-throughput prefill").ours, "75.5");
  EXPECT_EQ(row_of("layouts", "540B low-latency decode").ours, "ws2d:batch");
  EXPECT_EQ(row_of("figure-7", "wg-xyz overtakes: volume").ours, "131072-262144");
  EXPECT_NE(compared("figure-7").notes[0].find("147456 tokens"), std::string::npos);
  // The whole model at 1,048,576 tokens, where XY is ahead.
  const std::string ahead = compared("layouts").notes[0];
  EXPECT_NE(ahead.find("2.92e9 elements a layer with wg-xy and 4.61e9"), std::string::npos)
      << ahead;
}

TEST(Comparison, FailsWithConstantsOfAnotherChip) {
  const Efficiency slow{.compute = 0.1, .interconnect = 1.0, .time_of_layer = 0.0};
  std::set<std::string> failed;
  for (const auto& [row, verdict] : apart(slow))
    if (verdict == Verdict::failed) failed.insert(row);
  EXPECT_TRUE(failed.contains("times 540B high-throughput prefill"));
  // What has no constant in it stays as it is.
  for (const std::string& row : failed) EXPECT_EQ(row.find("figure-3"), std::string::npos) << row;
}

TEST(Comparison, TotalsCountVerdicts) {
  std::vector<ComparedSection> sections(2);
  const auto add = [&](std::size_t section, Verdict verdict) {
    ComparedRow row;
    row.verdict = verdict;
    sections[section].rows.push_back(row);
  };
  for (const Verdict verdict :
       {Verdict::exact, Verdict::rounding, Verdict::percent, Verdict::holds, Verdict::near})
    add(0, verdict);
  for (const Verdict verdict : {Verdict::unexplained, Verdict::unexplained, Verdict::failed})
    add(1, verdict);
  const ComparedTotals totals = totals_of(sections);
  EXPECT_EQ(totals.rows, 8);
  EXPECT_EQ(totals.hold, 5);
  EXPECT_EQ(totals.unexplained, 2);
  EXPECT_EQ(totals.failed, 1);
}

TEST(Comparison, KnowsItsSections) {
  const auto unknown = [] { compared("figure-9"); };
  EXPECT_EQ(label_of(unknown), "comparison_c1");
  EXPECT_NE(message_of(unknown).find("figure-3"), std::string::npos);
}

}  // namespace
}  // namespace shardproof::cost
