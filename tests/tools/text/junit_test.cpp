#include "tools/text/junit.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/xml.h"
#include "tools/text/annotation.h"

namespace shardproof::tools {
namespace {

using Outcome = JunitCase::Outcome;

TEST(Junit, IsWhatItsReadersExpect) {
  const Xml xml(junit_xml("a & b", {{"g", "right", Outcome::passed, "", "", 0.25},
                                    {"g", "wrong", Outcome::failed, "5 < 6", "more\nof it", 0.5},
                                    {"g", "left", Outcome::skipped, "no operand"}}));
  const auto suite = xml.document.child("testsuites").child("testsuite");
  EXPECT_STREQ(suite.attribute("name").value(), "a & b");
  for (const pugi::xml_node& counts : {suite, suite.parent()}) {
    EXPECT_EQ(counts.attribute("tests").as_int(), 3);
    EXPECT_EQ(counts.attribute("failures").as_int(), 1);
    EXPECT_EQ(counts.attribute("skipped").as_int(), 1);
    EXPECT_STREQ(counts.attribute("time").value(), "0.750");
  }
  EXPECT_EQ(xml.count("//testcase"), 3U);
  EXPECT_EQ(xml.count("//testcase[@name='right']/*"), 0U);
  EXPECT_EQ(xml.count("//testcase[@name='wrong']/failure[@message='5 < 6']"), 1U);
  EXPECT_EQ(xml.text("//failure"), "more\nof it");
  EXPECT_EQ(xml.count("//testcase[@name='left']/skipped[@message='no operand']"), 1U);
}

RC_GTEST_PROP(Junit, IsWellFormedWhateverItSays, (const std::string& text)) {
  const Xml xml(junit_xml(text, {{text, text, Outcome::failed, text, text, 1.0}}));
  RC_ASSERT(xml.count("//testcase/failure") == 1U);
}

TEST(Annotation, EscapesWhatAWorkflowReads) {
  EXPECT_EQ(annotation("a: b, c", "50 %\nnext: x, y"),
            "::error title=a%3A b%2C c::50 %25%0Anext: x, y\n");
}

RC_GTEST_PROP(Annotation, IsOneLine, (const std::string& title, const std::string& message)) {
  const std::string line = annotation(title, message);
  RC_ASSERT(line.starts_with("::error title="));
  RC_ASSERT(line.find('\n') == line.size() - 1);
  RC_ASSERT(line.find('\r') == std::string::npos);
}

}  // namespace
}  // namespace shardproof::tools
