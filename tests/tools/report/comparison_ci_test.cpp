#include "tools/report/comparison_ci.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/tools/report/judged_dump.h"
#include "tests/tools/xml.h"
#include "tools/report/sentence.h"

namespace shardproof::tools {
namespace {

using bounds::Fit;

TEST(ComparisonJunit, HasATestCaseForEachValueAndOneForTheDump) {
  const JudgedDump dumps;
  const Comparison found = dumps.judged(dumps.dump());
  const Xml xml(comparison_junit(found));
  EXPECT_EQ(xml.count("//testcase"), found.verdict.rows.size() + 1);
  EXPECT_EQ(xml.count("//failure"), 0U);
  EXPECT_EQ(xml.count("//skipped"), static_cast<std::size_t>(found.verdict.count(Fit::not_judged)));
  EXPECT_EQ(xml.count("//testcase[@classname='decode.1.layer1' and @name='gate']"), 1U);
  EXPECT_EQ(comparison_annotations(found), "");
}

TEST(ComparisonJunit, FailsWhereAValueIsWrong) {
  const JudgedDump dumps;
  std::vector<dump::Written> values = dumps.run().values();
  for (const char* name : {"decode.1.layer0.up", "decode.1.layer1.out"})
    dump::named(values, name).numbers[0] += 1;
  const Comparison found = dumps.judged(dumps.run().trace(values, "f32"));
  // Those two, and those that follow from what is written in their place.
  const auto wrong = static_cast<std::size_t>(found.verdict.count(Fit::different));
  ASSERT_GE(wrong, 2U);
  const Xml xml(comparison_junit(found));
  EXPECT_EQ(xml.count("//failure"), wrong + 1);
  const auto first = xml.document.select_node("//testcase[@name='up']/failure").node();
  EXPECT_EQ(first.attribute("message").value(), sentence(found));
  EXPECT_NE(std::string(first.child_value()).find("first divergence: decode.1.layer0.up"),
            std::string::npos);
  EXPECT_EQ(xml.count("//testcase[@classname='decode.1.layer1' and @name='out']/failure"), 1U);
  EXPECT_EQ(xml.count("//testcase[@classname='' and @name='dump']/failure"), 1U);
  const std::string lines = comparison_annotations(found);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'),
            std::ssize(found.verdict.rows) - found.verdict.count(Fit::within) -
                found.verdict.count(Fit::near) - found.verdict.count(Fit::equal) -
                found.verdict.count(Fit::not_judged));
  EXPECT_TRUE(lines.starts_with("::error title=shardproof%3A decode.1.layer0.up::mine.npz: "))
      << lines;
}

TEST(ComparisonJunit, FailsWhereTheDumpProvesNothing) {
  const JudgedDump dumps;
  std::vector<dump::Written> values = dumps.run().values();
  std::erase_if(values, [](const dump::Written& w) { return !w.name.ends_with(".ids"); });
  const Comparison found = dumps.judged(dumps.run().trace(values, "f32"));
  const Xml xml(comparison_junit(found));
  EXPECT_EQ(xml.count("//failure"), 1U);
  EXPECT_EQ(xml.count("//testcase[@name='dump']/failure"), 1U);
  EXPECT_TRUE(
      comparison_annotations(found).starts_with("::error title=shardproof::mine.npz: Not "));
}

}  // namespace
}  // namespace shardproof::tools
