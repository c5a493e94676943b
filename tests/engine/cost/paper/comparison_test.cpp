// The paper's numbers beside the model's: how rows are judged, and that what must hold holds.
#include "engine/cost/paper/comparison.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/cost/formulas/embeddings.h"
#include "engine/cost/paper/calibration.h"
#include "engine/cost/paper/detail/comparison_rows.h"
#include "engine/cost/paper/published.h"
#include "tests/engine/cost/cases.h"

namespace shardproof::cost {
namespace {

Range exactly(double number) { return {number, number, number}; }

TEST(Published, PrintedNumbersRoundByTheirDigits) {
  const Printed two{"0.29"}, whole{"43"}, thousands{"43000"}, zero{"6.0"};
  EXPECT_EQ(two.value(), 0.29);
  EXPECT_EQ(two.half_unit(), 0.005);
  EXPECT_EQ(whole.half_unit(), 0.5);
  EXPECT_EQ(thousands.value(), 43000.0);
  EXPECT_EQ(zero.half_unit(), 0.05);
  const auto rounds = [](const Printed& printed, double number) {
    return agree(Verdict::rounding, range_of(printed), exactly(number));
  };
  EXPECT_TRUE(rounds(two, 0.2949));
  EXPECT_TRUE(rounds(two, 0.295));
  EXPECT_FALSE(rounds(two, 0.2951));
  EXPECT_TRUE(rounds(two, 0.285));
  EXPECT_FALSE(rounds(two, 0.2849));
  EXPECT_FALSE(rounds(whole, 42.4));
  EXPECT_TRUE(rounds(whole, 42.6));
}

/// Every number of the data is one that can be read, above 0.
TEST(Published, NumbersAreNumbers) {
  std::vector<std::string> all;
  for (const MeasuredPass& pass : tables_2_and_3())
    for (const char* name : {"mfu", "seconds"}) all.push_back(pass.settings.text(name));
  for (const PublishedSection& section : published_sections())
    for (const PublishedRow& row : section.rows)
      if (row.verdict != "holds" && row.verdict != "-" && !is_quantity(row.published))
        all.push_back(row.published);
  EXPECT_EQ(all.size(), 16U + 106U);
  for (const std::string& text : all) {
    EXPECT_GT(Printed{text}.value(), 0.0) << text;
    EXPECT_EQ(text.find_first_not_of("0123456789."), std::string::npos) << text;
  }
}

TEST(Published, ToriAreThoseOfTheReleasedCode) {
  ASSERT_EQ(tables_2_and_3().size(), 8U);
  for (const MeasuredPass& pass : tables_2_and_3())
    EXPECT_EQ(pass.settings.torus(), released_torus(pass.settings.torus().chips())) << pass.name;
  for (const int chips : {1, 4, 8, 16, 32, 64, 128, 256, 512})
    EXPECT_EQ(released_torus(chips).chips(), chips);
  EXPECT_EQ(label_of([] { released_torus(3); }), "published_c1");
}

TEST(ComparedRows, AreJudgedByWhatIsAskedOfThem) {
  const Range three = range_of(Printed{"3.0"});
  const double near = table_calibration().worst_left_out();
  EXPECT_TRUE(agree(Verdict::exact, three, exactly(3.0)));
  EXPECT_FALSE(agree(Verdict::exact, three, exactly(3.0 + 1e-15)));
  EXPECT_TRUE(agree(Verdict::rounding, three, exactly(3.04)));
  EXPECT_FALSE(agree(Verdict::rounding, three, exactly(3.06)));
  EXPECT_FALSE(agree(Verdict::rounding, three, {3.2, 3.06, 3.3}));
  EXPECT_TRUE(agree(Verdict::rounding, three, {3.2, 3.04, 3.3}));
  EXPECT_FALSE(agree(Verdict::rounding, three, {2.8, 2.7, 2.94}));
  EXPECT_TRUE(agree(Verdict::percent, three, exactly(3.0 * 1.0199)));
  EXPECT_FALSE(agree(Verdict::percent, three, exactly(3.0 * 1.0201)));
  EXPECT_FALSE(agree(Verdict::percent, three, exactly(3.0 * 0.9799)));
  EXPECT_TRUE(agree(Verdict::near, three, exactly(3.0 * (1 + 0.999 * near))));
  EXPECT_FALSE(agree(Verdict::near, three, exactly(3.0 * (1 + 1.001 * near))));
  EXPECT_FALSE(agree(Verdict::near, three, exactly(3.0 * (1 - 1.001 * near))));
}

/// A quantity that is computed from a printed number ranges over what rounds to that one.
TEST(ComparedRows, RangeAsThePrintedNumberThatTheyAreOf) {
  Formula of{"seconds_of_chips", tables_2_and_3()[0].settings, "", {}};
  const Range range = range_of(of, {});
  EXPECT_DOUBLE_EQ(range.value, 64 * 0.29 / 2048);
  EXPECT_DOUBLE_EQ(range.least, 64 * 0.285 / 2048);
  EXPECT_DOUBLE_EQ(range.most, 64 * 0.295 / 2048);
  of.quantity = "chip_seconds_of_mfu";  // falls with the printed number
  EXPECT_GT(range_of(of, {}).most, range_of(of, {}).least);
  of.quantity = "tokens";
  EXPECT_EQ(range_of(of, {}).least, range_of(of, {}).most);
}

/// What the notes of the section `volumes` say.
TEST(Published, OneAndTwoAxesMoveAsMuchOn16Chips) {
  int equal = 0;
  for (const MeasuredPass& pass : tables_2_and_3()) {
    Formula ws1d{"volume", pass.settings, "", {}}, ws2d = ws1d;
    ws1d.settings.set("ffn", "ws1d");
    ws2d.settings.set("ffn", "ws2d");
    if (pass.settings.text("ffn") != "ws2d" || value_of(ws1d, {}) != value_of(ws2d, {})) continue;
    EXPECT_TRUE(compared("volumes").notes[static_cast<std::size_t>(equal++)].starts_with(
        pass.name + ": 1D and 2D move as much"));
  }
  EXPECT_EQ(compared("volumes").notes.size(), static_cast<std::size_t>(equal));
  EXPECT_EQ(equal, 2);
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
  std::map<std::string, Verdict> rows;
  for (const CaseLine& line : case_lines("paper/sections.txt", "unexplained"))
    rows.emplace(line.text(0), Verdict::unexplained);
  EXPECT_EQ(apart(fitted_efficiency()), rows);
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
  std::map<std::string, std::size_t> expected;
  for (const CaseLine& line : case_lines("paper/sections.txt", "rows"))
    expected[line.text(0)] = static_cast<std::size_t>(line.whole(1));
  EXPECT_EQ(rows, expected);
}

/// By eye, of each kind.
TEST(Comparison, SaysTheNumbers) {
  for (const CaseLine& line : case_lines("paper/sections.txt", "shown")) {
    int found = 0;
    for (const ComparedRow& row : compared(line.text(0)).rows)
      if (row.what == line.text(1)) {
        EXPECT_EQ(row.published, line.text(2)) << row.what;
        EXPECT_EQ(row.ours, line.text(3)) << row.what;
        ++found;
      }
    EXPECT_EQ(found, 1) << line.text(1);
  }
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
  EXPECT_TRUE(failed.contains("figure-7 131072 tokens, lower")) << "a choice without a reason";
  // What has no constant in it stays as it is.
  for (const std::string& row : failed) EXPECT_EQ(row.find("figure-3"), std::string::npos) << row;
}

/// Where hardly anything may be sent, layouts are chosen that no reason names.
TEST(Comparison, AReasonForOneChoiceExcusesNoOther) {
  const Efficiency narrow{.compute = 1.0, .interconnect = 0.001, .time_of_layer = 0.0};
  int seen = 0;
  for (const ComparedRow& row : compared("layouts", narrow).rows)
    if (row.what == "62B low-latency decode") {
      ++seen;
      EXPECT_EQ(row.ours, "ws2d:heads");
      EXPECT_EQ(row.verdict, Verdict::failed);
      EXPECT_EQ(row.why, "");
    }
  EXPECT_EQ(seen, 1);
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

TEST(Comparison, SaysWhatShips) {
  EXPECT_EQ(compared("times").notes.at(1), embeddings_note(NumberFormat::int8) + ".");
}

TEST(Comparison, KnowsItsSections) {
  const auto unknown = [] { compared("figure-9"); };
  EXPECT_EQ(label_of(unknown), "comparison_c1");
  EXPECT_NE(message_of(unknown).find("figure-3"), std::string::npos);
}

}  // namespace
}  // namespace shardproof::cost
