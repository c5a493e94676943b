// The verb `paper`: the comparison as text and as JSON, its exit code, and the fit.
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/tools/cli_fixture.h"

namespace {

class PaperVerb : public Cli {};

TEST_F(PaperVerb, PrintsTheWholeComparison) {
  const Outcome o = run("paper");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* text : {"table-1  Table 1", "figure-3  Figure 3", "786432", "540.35",
                           "not explained", "FasterTransformer", "147456", " 0 FAILED",
                           "int8 weights: embedding and unembedding are bf16"})
    EXPECT_NE(o.out.find(text), std::string::npos) << text;
  std::istringstream lines(o.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_FALSE(line.ends_with(" ")) << "'" << line << "'";
  }
}

TEST_F(PaperVerb, PrintsTheSameAsJson) {
  const auto json = nlohmann::json::parse(run("paper --json").out);
  EXPECT_EQ(json["schema"], 2);
  EXPECT_EQ(json["held"], true);
  EXPECT_EQ(json["sections"].size(), 13U);
  std::size_t rows = 0, unexplained = 0;
  for (const auto& section : json["sections"])
    for (const auto& row : section["rows"]) {
      ++rows;
      const bool said = row["verdict"] == "not explained";
      unexplained += said ? 1U : 0U;
      EXPECT_EQ(row.contains("why"), said) << row;
    }
  EXPECT_EQ(json["totals"]["rows"], rows);
  EXPECT_EQ(json["totals"]["unexplained"], unexplained);
  EXPECT_EQ(json["totals"]["hold"], rows - unexplained);
  EXPECT_EQ(json["totals"]["failed"], 0);
}

TEST_F(PaperVerb, PrintsOneSection) {
  const auto all = nlohmann::json::parse(run("paper --json").out);
  for (const auto& section : all["sections"]) {
    const auto one = nlohmann::json::parse(
        run("paper --json --only " + section["section"].get<std::string>()).out);
    EXPECT_EQ(one["sections"], nlohmann::json::array({section}));
  }
  expect_refused("paper --only figur-3", "comparison_c1: the paper has no section 'figur-3'");
}

TEST_F(PaperVerb, FitsTheConstantsThatShip) {
  const std::string shipped = slurp(SHARDPROOF_SOURCE "/engine/cost/work/efficiency.txt");
  const Outcome printed = run("paper --fit");
  EXPECT_EQ(printed.code, 0);
  EXPECT_EQ(printed.out, shipped);
  const Outcome written = run("paper --fit --out fitted.txt");
  EXPECT_EQ(written.code, 0);
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(slurp(path("fitted.txt")), shipped);
  EXPECT_EQ(run("paper --constants fitted.txt").out, run("paper").out);
}

}  // namespace
