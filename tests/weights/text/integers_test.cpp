// Which values of a text are integers made of positions.
#include "weights/text/integers.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/weights/text/plain_model.h"

namespace shardproof {
namespace {

TextSizes sizes(const ModelText& text) { return sizes_of(text, {}); }

/// The plain model with a line more in its embedding.
ModelText with(const std::string& line) {
  std::string text(kPlainModel);
  const std::string before = "see : BLM = within(far, -inf, 0)\n";
  return parse_model_text(text.replace(text.find(before), before.size(), before + line + "\n"));
}

TEST(Integers, AreThoseOfPositionsAlone) {
  const ModelText text = parse_model_text(std::string(kPlainModel));
  EXPECT_EQ(integers_of(text, sizes(text), true),
            (std::set<std::string>{"far", "pos", "see", "see_near", "slot"}));
  EXPECT_FALSE(ranges_over_numbers(text, sizes(text)));
}

TEST(Integers, AreMadeOfExtentsAndOfWholeNumbersIfAsked) {
  const auto has = [](const std::string& line, bool numbers) {
    const ModelText text = with(line);
    return integers_of(text, sizes(text), numbers).contains("steps");
  };
  for (const bool numbers : {false, true}) {
    EXPECT_TRUE(has("steps : BL = mul(pos, H)", numbers));
    EXPECT_TRUE(has("steps : BL = relu(sub(pos, 3))", numbers));
    EXPECT_FALSE(has("steps : BL = mul(pos, 0.5)", numbers));
    EXPECT_FALSE(has("steps : BL = mul(pos, eps)", numbers));
    EXPECT_FALSE(has("steps : BL = exp(pos)", numbers));
    EXPECT_FALSE(has("steps : BLE = mul(embed, 2)", numbers));
    EXPECT_EQ(has("steps : BL = add(pos, near)", numbers), numbers);  // 1 - 3
  }
}

TEST(Integers, ARangeOfOtherNumbersIsFoundInAnyPart) {
  const auto found = [](const std::string& line) {
    const ModelText text = with(line);
    return ranges_over_numbers(text, sizes(text));
  };
  EXPECT_FALSE(found("steps : BL = within(sub(pos, 3), 0, inf)"));
  EXPECT_FALSE(found("steps : BLM = mul(see, within(far, near, 0))"));
  EXPECT_TRUE(found("steps : BLE = within(embed, 0, inf)"));
  EXPECT_TRUE(found("steps : BLE = mul(embed, within(mul(pos, 0.5), 0, 1))"));
  EXPECT_TRUE(found("steps : BL = within(add(pos, near), 0, inf)"));
}

}  // namespace
}  // namespace shardproof
