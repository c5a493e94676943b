// docs/layouts.md and the lists of strategies in the documents against the tables.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "engine/run/plan_types.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

std::string document(const std::string& name) {
  std::ifstream file(std::string(SHARDPROOF_SOURCE "/docs/") + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(LayoutsDocument, ItsExampleIsATableThatCanBeLowered) {
  const std::string text = document("layouts.md");
  const std::string begin = "```layouts\n";
  const auto at = text.find(begin);
  ASSERT_NE(at, std::string::npos);
  const std::string example =
      text.substr(at + begin.size(), text.find("```", at + begin.size()) - at - begin.size());
  const std::vector<LayoutTable> tables = parse_layouts(example);
  ASSERT_EQ(tables.size(), 1U);
  Case c;
  c.torus = Torus(4, 2, 3);
  c.model = parse_model("palm-tiny");
  c.prefill = Strategy(tables[0]);
  c.batch = 24;
  c.prompt = c.chunk = 1;
  EXPECT_FALSE(partitioned(c, c.prefill, Phase::prefill).layer.ops.empty());
}

TEST(LayoutsDocument, HasARowForEveryValueAndNote) {
  const std::string text = document("layouts.md");
  for (const LayoutValue& value : layout_values())
    EXPECT_NE(text.find(fmt::format("`{}`", value.name)), std::string::npos) << value.name;
  EXPECT_NE(text.find("\"strict\""), std::string::npos);
}

TEST(Documents, NameEveryStrategyThatShips) {
  const std::string spec = document("spec-case.md");
  const auto begin = spec.find("### 6.1"), end = spec.find("### 6.2");
  const std::string keys = spec.substr(begin, end - begin);
  for (const Strategy& s : all_strategies())
    EXPECT_NE(keys.find(fmt::format("`{}`", s.to_string())), std::string::npos) << s.to_string();
}

}  // namespace
}  // namespace shardproof
