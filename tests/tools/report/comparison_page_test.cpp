// The page of `compare`: right dumps, and dumps with one number changed, at each value and chip.
#include "tools/report/comparison_page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "golden/diagnosis/diagnosis.h"
#include "tests/tools/report/judged_dump.h"
#include "tests/tools/xml.h"
#include "tools/report/comparison_text.h"
#include "tools/report/sentence.h"

namespace shardproof::tools {
namespace {

using bounds::Fit;

TEST(Sentence, WritesRanksAsRanges) {
  EXPECT_EQ(ranks_text({}), "");
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({0, 1, 2, 3, 6, 8, 9}), "ranks 0-3, 6, 8-9");
}

TEST(Sentence, OfEveryKindOfFaultSaysWhatToDo) {
  for (const std::string& fault : diagnosis::faults()) EXPECT_NE(diagnosis::remedy(fault), "");
  EXPECT_EQ(diagnosis::remedy("none of them"), "");
}

TEST(ComparisonPage, OfARightDumpHasAllItsValuesAndNoFault) {
  const JudgedDump dumps;
  const Comparison found = dumps.judged(dumps.dump());
  ASSERT_EQ(found.exit_code(), 0);
  const Xml page(comparison_page(found));
  EXPECT_EQ(
      page.text("//p[@id='sentence' and contains(@class,'right')]"),
      fmt::format("✓ No value is wrong: {} of {} values of the model are compared, {} rows "
                  "are right.",
                  found.verdict.compared, found.verdict.whole, found.verdict.count(Fit::equal)));
  std::set<std::string> places, names;
  for (const dump::Row& row : found.verdict.rows) {
    const std::size_t dot = row.title.rfind('.');
    places.insert(row.title.substr(0, dot));
    names.insert(row.title.substr(dot + 1));
  }
  EXPECT_EQ(page.count("//table[@id='values']/tr"), 1 + places.size());
  EXPECT_EQ(page.count("//table[@id='values']/tr/th[@class='up']"), names.size());
  EXPECT_EQ(page.count("//table[@id='values']//td/span"), found.verdict.rows.size());
  EXPECT_EQ(page.count("//table[@id='values']//span[@class='wrong']"), 0U);
  EXPECT_EQ(page.count("//*[@id='list']//tr[td]"), found.verdict.rows.size());
  EXPECT_EQ(page.count("//*[@id='list']//tr[th]"), (found.verdict.rows.size() + 99) / 100);
  EXPECT_EQ(page.count("//*[@id='first' or @id='mesh' or @id='causes' or @id='remedy']"), 0U);
  EXPECT_EQ(page.text("//pre[@id='command']"), "shardproof compare mine.npz");
  EXPECT_EQ(page.count("//table[@id='declared']/tr[td[1]='arithmetic' and td[2]='exact']"), 1U);
}

/// Adds one to a number of a value, on one chip where it is in shards. Returns that chip's rank.
int change(dump::Dump& dump, const std::string& name, int chip, const Comparison& right) {
  dump::Value& value = dump.values.find(name)->second;
  const dump::Row& row = dump::named(right.verdict.rows, name);
  const dump::DumpedValue& dumped = right.dumped(row);
  if (!value.in_shards()) {
    const auto size = static_cast<std::size_t>(value.whole.size());
    const std::size_t rank =
        dumped.whole ? 0 : static_cast<std::size_t>(right.claim.mesh.rank(dumped.torus, chip));
    const std::size_t local = dumped.whole ? size : size / dumped.shards.size();
    dump::poke(value.whole, rank * local, value.whole.at(rank * local) + 1);
    return static_cast<int>(rank);
  }
  dump::StoredArray& shard = value.chips.at(judged_coordinates(dumped.torus, chip));
  dump::poke(shard, 0, shard.at(0) + 1);
  return right.claim.mesh.rank(dumped.torus, chip);
}

TEST(ComparisonPage, NamesTheChipOfEachChangedValue) {
  const JudgedDump dumps;
  int chip = 0, in_shards = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const dump::Dump right = dumps.dump(seed);
    const Comparison all_right = dumps.judged(right);
    int number = 0;
    for (const std::string& name : right.order) {
      if (name.ends_with("ids") || name.ends_with("token")) continue;
      if (++number % 7 != static_cast<int>(seed)) continue;
      dump::Dump wrong = right;
      chip = (chip + 1) % 6;
      const int rank = change(wrong, name, chip, all_right);
      const Comparison found = dumps.judged(wrong);
      ASSERT_NE(found.first(), nullptr) << name;
      SCOPED_TRACE(name + " " + right.values.find(name)->second.attributes.at("layout"));
      EXPECT_EQ(found.first()->name, name);
      const Xml page(comparison_page(found));
      const std::string said = page.text("//p[@id='sentence' and contains(@class,'wrong')]");
      EXPECT_EQ(page.count("//table[@id='values']//span[@class='wrong']"), 1U);
      EXPECT_EQ(page.text("//pre[@id='first']"), divergence_text(found));
      EXPECT_NE(page.text("//p[@id='remedy']"), "");
      if (found.dumped(*found.first()).whole) {
        EXPECT_TRUE(said.starts_with("✗ " + name + ": ")) << said;
        EXPECT_EQ(page.count("//*[@id='mesh']"), 0U);
        continue;
      }
      ++in_shards;
      EXPECT_TRUE(said.starts_with(fmt::format("✗ rank {}, {}: ", rank, name))) << said;
      EXPECT_EQ(wrong_ranks(found), std::vector<int>{rank});
      EXPECT_EQ(page.count("//*[@id='mesh']//td"), 6U);
      EXPECT_EQ(page.count("//*[@id='mesh']//span[@class='wrong']"), 1U);
      EXPECT_EQ(page.count(fmt::format("//*[@id='mesh']//td[span[@class='wrong']][contains(@title, "
                                       "'rank {}: 1 of ')]",
                                       rank)
                               .c_str()),
                1U);
      const bool cut = page.count("//table[@id='blocks']") == 1;
      EXPECT_EQ(page.count("//table[@id='blocks']//span[@class='wrong']"), cut ? 1U : 0U);
    }
  }
  EXPECT_GT(in_shards, 10);
}

TEST(ComparisonPage, HasTheOperandsOfTheFirstDivergence) {
  const JudgedDump dumps;
  std::vector<dump::Written> values = dumps.run().values();
  std::erase_if(values, [](const dump::Written& w) { return w.name == "decode.1.layer1.up"; });
  dump::named(values, "decode.1.layer1.hidden").numbers[0] += 1;
  const Comparison found = dumps.judged(dumps.run().trace(values, "f32"));
  ASSERT_NE(found.first(), nullptr);
  const Xml page(comparison_page(found));
  EXPECT_EQ(page.text("//table[@id='operands']/tr[td[1]='decode.1.layer1.gate']/td[2]"),
            "✓ within");
  EXPECT_EQ(page.text("//table[@id='operands']/tr[td[1]='decode.1.layer1.up']/td[2]"),
            "not in the dump");
  EXPECT_EQ(page.text("//p[@id='remedy']"),
            "What to do: dump its operands, too, so that the cause can be found: "
            "decode.1.layer1.up.");
}

TEST(ComparisonPage, OfADumpThatProvesNothingSaysSo) {
  const JudgedDump dumps;
  std::vector<dump::Written> values = dumps.run().values();
  std::erase_if(values, [](const dump::Written& w) { return !w.name.ends_with(".ids"); });
  const Comparison found = dumps.judged(dumps.run().trace(values, "f32"));
  ASSERT_EQ(found.exit_code(), 1);
  const Xml page(comparison_page(found));
  EXPECT_TRUE(page.text("//p[@id='sentence' and contains(@class,'weak')]")
                  .starts_with("? Not shown to be right: nothing is proved"));
}

TEST(ComparisonPage, ShowsHostileNamesAsText) {
  const JudgedDump dumps;
  dump::Dump dump = dumps.dump();
  const std::string name = "</pre><script>alert('1')</script>";
  dump.attributes[name] = "<b>\xff";
  dump.order.push_back(name);
  dump.values[name] = dump.values.begin()->second;
  const Comparison found = dumps.judged(dump, "'<i>.npz");
  const std::string text = comparison_page(found);
  EXPECT_EQ(text.find("<script"), std::string::npos);
  const Xml page(text);
  EXPECT_EQ(page.text("//h1"), "shardproof compare '<i>.npz");
  EXPECT_EQ(page.count("//script"), 0U);
}

TEST(ComparisonPage, PlotsTheDriftOfEveryValue) {
  const JudgedDump dumps;
  std::vector<dump::Written> values = dumps.run().values();
  dump::named(values, "decode.1.layer1.out").numbers[0] += 1;
  const Comparison found = dumps.judged(dumps.run().trace(values, "f32"));
  const Xml page(comparison_page(found));
  std::size_t drifting = 0;
  for (const dump::Row& row : found.verdict.rows)
    drifting += row.drift >= 0 || row.fit == Fit::different ? 1 : 0;
  EXPECT_GT(drifting, 50U);
  EXPECT_EQ(page.count("//*[@id='drift']/*[contains(@class,'mark')]"), drifting);
  // A verdict is also told by its shape: circles, and crosses of wrong values.
  EXPECT_EQ(page.count("//*[@id='drift']/*[contains(@class,'wrong')][contains(@d,'l6 6m0-6')]"),
            2U);
  EXPECT_EQ(page.count("//*[@id='drift']/*[contains(@class,'right')][contains(@d,'a2 2')]"),
            drifting - 2);
  EXPECT_EQ(page.text("//*[@id='drift']/*[contains(@class,'wrong')]/*"),
            "decode.1.layer1.out: differentdecode.1.final_norm: different");
}

}  // namespace
}  // namespace shardproof::tools
