// Every rule of docs/typing.md, by its label: for each condition that it states, one program that
// breaks that condition and no earlier one. The programs are in the files beside this one.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/engine/program/typing/broken_program.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

TEST_P(TypingRule, IsEnforcedAndNamesWhatBreaksIt) {
  const std::string message = message_of([&] { parse_and_check(GetParam()); });
  EXPECT_TRUE(message.starts_with(GetParam().label + ": ")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const std::string& word : GetParam().words)
    EXPECT_NE(message.find(word), std::string::npos) << "'" << word << "' is not in: " << message;
}

/// The labels in the names of the tests above, whichever file gave the rows.
std::set<std::string> tested_labels() {
  std::set<std::string> labels;
  const std::regex row("[A-Za-z]+/([a-z_]+_c[0-9]+)(_[0-9]+)?");
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(s);
    if (!std::string(suite.name()).ends_with("/TypingRule")) continue;
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const std::string name = suite.GetTestInfo(t)->name();
      std::smatch found;
      if (std::regex_match(name, found, row))
        labels.insert(found[1]);
      else
        ADD_FAILURE() << name << " names no label";
    }
  }
  return labels;
}

TEST(TypingDocument, NamesExactlyTheRulesThatAreTested) {
  std::ifstream file(SHARDPROOF_TYPING_DOC);
  ASSERT_TRUE(file) << SHARDPROOF_TYPING_DOC;
  std::stringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  std::set<std::string> documented;
  const std::regex label("`([a-z_]+_c[0-9]+)`");
  for (std::sregex_iterator at(document.begin(), document.end(), label), end; at != end; ++at)
    documented.insert((*at)[1]);
  EXPECT_EQ(documented, tested_labels());
}

}  // namespace
}  // namespace shardproof
