// What `compare A B` prints of two traces: text, JSON and page, of right ones and of wrong ones.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/tools/report/judged_dump.h"
#include "tests/tools/xml.h"
#include "tools/report/pair_json.h"
#include "tools/report/pair_page.h"
#include "tools/report/pair_text.h"

namespace shardproof::tools {
namespace {

/// Two dumps of one run, each value in other layouts.
class PairReport : public testing::Test {
 protected:
  PairReport() : a(dumps_.dump(1)), b(dumps_.dump(2)) {}

  PairComparison compared(bool plain = false) const {
    PairComparisonRequest request;
    request.a.file = "a.npz", request.b.file = "b & c.npz";
    request.plain = plain, request.runs = 2;
    return compare_pair(a, b, request);
  }
  /// Adds one to a number of a value of B on every chip that has it.
  void change(const std::string& name) {
    dump::Value& value = b.values.find(name)->second;
    const auto add = [](dump::StoredArray& array) {
      for (std::size_t i = 0; i < array.size(); ++i) dump::poke(array, i, array.at(i) + 1);
    };
    if (value.in_shards())
      for (auto& [chip, array] : value.chips) add(array);
    else
      add(value.whole);
  }

  JudgedDump dumps_;
  dump::Dump a, b;
};

TEST_F(PairReport, OfTheSameValuesSaysSo) {
  const PairComparison found = compared();
  EXPECT_EQ(found.exit_code(), 0);
  const auto rows = found.pair.rows.size();
  EXPECT_EQ(sentence(found), fmt::format("Rounding explains all: {} values have the same bits, 0 "
                                         "are apart by rounding.",
                                         rows));
  const auto json = nlohmann::json::parse(pair_json(found));
  EXPECT_EQ(json["verdict"], "explained");
  EXPECT_EQ(json["values"].size(), rows);
  EXPECT_TRUE(json["first"].is_null());
  EXPECT_EQ(json["values"][3]["verdict"], "the same bits");
  EXPECT_EQ(json["reproduce"], "shardproof compare a.npz 'b & c.npz' --runs 2");
  const Xml page(pair_page(found));
  EXPECT_EQ(page.count("//table[@id='values']/tr[td]"), rows);
  EXPECT_EQ(page.count("//p[@id='sentence' and contains(@class,'right')]"), 1U);
  EXPECT_EQ(page.count("//table[@id='values']//td[@class='wrong']"), 0U);
  // A mark of each and a bar of the runs of each, for every layer's output.
  EXPECT_EQ(page.count("//*[@id='drift']//*[contains(@class,'mark')]"), 4 * json["drift"].size());
  EXPECT_EQ(json["drift"].size(), 4U);
  EXPECT_GT(json["drift"][0]["runs_a"]["most"].get<double>(), 0);
  EXPECT_EQ(json["drift"][0]["a"].get<double>(), 0);
}

TEST_F(PairReport, OfAWrongValueNamesItEverywhere) {
  const std::string name = "prefill.c0.layer1.gate";
  change(name);
  const PairComparison found = compared();
  EXPECT_EQ(found.exit_code(), 1);
  EXPECT_TRUE(sentence(found).starts_with("B is wrong at " + name)) << sentence(found);
  const std::string text = pair_text(found, true);
  EXPECT_NE(text.find("\nwrong in B: " + name + "\n"), std::string::npos) << text;
  EXPECT_NE(text.find("first that parts although its operands agree: " + name + "\n"),
            std::string::npos)
      << text;
  std::istringstream lines(pair_text(found, false));
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), line.find("Δ") == std::string::npos ? 80U : 81U) << line;
  const auto json = nlohmann::json::parse(pair_json(found));
  EXPECT_EQ(json["first"], name);
  EXPECT_EQ(json["first_of_b"], name);
  EXPECT_TRUE(json["first_of_a"].is_null());
  for (const auto& value : json["values"]) {
    if (value["id"] != name) continue;
    EXPECT_EQ(value["verdict"], "B is wrong");
    EXPECT_EQ(value["worst"]["index"].size(), 3U);
    EXPECT_NEAR(value["worst"]["b"].get<double>() - value["worst"]["a"].get<double>(), 1, 1e-9);
    EXPECT_EQ(value["b"]["fit"], "different");
    EXPECT_EQ(value["a"]["fit"], "equal");
  }
  const Xml page(pair_page(found));
  EXPECT_EQ(page.count("//p[@id='sentence' and contains(@class,'wrong')]"), 1U);
  const std::string path = "//table[@id='values']/tr[td[1]='" + name + "' and td[2]='✗']";
  EXPECT_GE(page.count(path.c_str()), 1U);
  EXPECT_EQ(page.count("//pre[@id='first']"), 1U);
}

/// A reason that many rows in turn have stands once, and the sentence says where it begins.
TEST_F(PairReport, OfOtherWeightsSaysWhyOnce) {
  std::string line = JudgedDump::kLine;
  line.replace(line.find("seed=5"), 6, "seed=6");
  const dump::ExactRun other(line);
  b = other.trace(other.values(), "exact");
  const PairComparison found = compared();
  EXPECT_EQ(found.exit_code(), 1);
  std::istringstream lines(pair_text(found, true));
  int reasons = 0;
  for (std::string text; std::getline(lines, text);)
    reasons += text == "  the weights differ" ? 1 : 0;
  EXPECT_GT(found.pair.count(dump::Likeness::operands), 20);
  EXPECT_GT(reasons, 0);
  EXPECT_LT(reasons, 5);
  const auto first = found.pair.first_open();
  ASSERT_TRUE(first);
  EXPECT_TRUE(sentence(found).starts_with("Not explained from " + found.pair.rows[*first].title +
                                          " on (" + found.pair.rows[*first].why + "): "))
      << sentence(found);
}

TEST_F(PairReport, WithoutAModelClaimsBitsAlone) {
  change("prefill.c0.layer1.gate");
  const PairComparison found = compared(true);
  EXPECT_EQ(found.exit_code(), 1);
  EXPECT_TRUE(sentence(found).ends_with(", 1 differ.")) << sentence(found);
  const auto json = nlohmann::json::parse(pair_json(found));
  EXPECT_EQ(json["model"], false);
  int open = 0;
  for (const auto& value : json["values"]) open += value["verdict"] == "not judged" ? 1 : 0;
  EXPECT_EQ(open, 1);
  EXPECT_FALSE(json.contains("drift"));
  const Xml page(pair_page(found));
  EXPECT_EQ(page.count("//*[@id='drift']"), 0U);
  EXPECT_NE(pair_text(found, true).find("not judged"), std::string::npos);
}

}  // namespace
}  // namespace shardproof::tools
