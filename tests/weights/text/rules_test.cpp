// What texts of models are refused for, line by line, with what the message names.
#include "weights/text/rules.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/weights/text/plain_model.h"
#include "weights/base/detail/words.h"
#include "weights/text/sizes.h"

namespace shardproof {
namespace {

std::string folder(const char* name) { return std::string(SHARDPROOF_SOURCE "/tests/") + name; }

TEST(ModelRules, ThePlainTextBreaksNone) {
  EXPECT_EQ(refusal_of(std::string(kPlainModel)), "none");
}

TEST(ModelRules, EachIsBrokenByALine) {
  const std::string table = file_text(folder("weights/text/refusals.txt"));
  std::set<std::string> labels;
  int rows = 0;
  for (const std::string_view row : split(table, "\n")) {
    if (row.empty() || row[0] == '#') continue;
    const auto parts = split(row, " => ");
    ASSERT_EQ(parts.size(), 3U) << row;
    const std::string said = refusal_of(with_line(parts[0], parts[1]));
    ++rows;
    if (parts[2] == "none") {
      EXPECT_EQ(said, "none") << row;
      continue;
    }
    const std::string label(parts[2].substr(0, parts[2].find(": ")));
    labels.insert(label);
    EXPECT_TRUE(said.starts_with(label + ": m.model line ") ||
                said.starts_with(label + ": m.model: the section"))
        << row << "\n"
        << said;
    EXPECT_NE(said.find(parts[2].substr(label.size() + 2)), std::string::npos) << row << "\n"
                                                                               << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
  EXPECT_GT(rows, 100);
  for (const int rule : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
    EXPECT_TRUE(labels.contains("model_c" + std::to_string(rule))) << rule;
}

TEST(ModelRules, NameTheLine) {
  EXPECT_TRUE(refusal_of(with_line("norm : BLE = store(mul(div(in, sqrt(add(mean(mul(in, in), E), "
                                   "eps))), g))",
                                   "norm : BL = in"))
                  .starts_with("model_c3: m.model line 33: norm: declared BL"));
}

TEST(ModelRules, IndicatorsAreWhatIsZeroOrOne) {
  const auto refused = [](const std::string& mask) {
    return refusal_of(
        with_line("far : BLM = sub(slot, pos)",
                  "far : BLM = sub(slot, pos)\nold : BLM = within(far, -9, -1)\nmask : "
                  "BLM = " +
                      mask + "\nchecked : BLM where mask = far"));
  };
  for (const char* mask : {"within(far, 0, 1)", "old", "mul(old, within(far, 0, 1))",
                           "larger(old, old)", "top(far, M, 1)"})
    EXPECT_EQ(refused(mask), "none") << mask;
  for (const char* mask : {"far", "add(old, old)", "mul(old, far)", "mul(far, old)", "mul(old, 1)",
                           "clamp(far, 0, 1)", "store(far)", "abs(old)", "larger(old, far)"})
    EXPECT_TRUE(refused(mask).starts_with("model_c10: ")) << mask << refused(mask);
}

TEST(ModelRules, HostileTextsEndSoon) {
  std::string many = "model m\n";
  for (int i = 0; i < 100'000; ++i) many += "# line\n";
  EXPECT_TRUE(refusal_of(many).starts_with("model_c0: m.model line 10001: a model has at most"));
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "exp(";
  EXPECT_TRUE(refusal_of(with_line("state : BLE = clamp(faded, -8, 8)",
                                   "state : BLE = " + deep + "in" + std::string(10'000, ')')))
                  .starts_with("model_c0: m.model line 45: a line has at most 4096 bytes"));
  deep.resize(4 * 200);
  EXPECT_NE(refusal_of(with_line("state : BLE = clamp(faded, -8, 8)",
                                 "state : BLE = " + deep + "in" + std::string(200, ')')))
                .find("nested more than 64 deep"),
            std::string::npos);
  std::string chain = std::string(kPlainModel);
  std::string lines;
  for (int i = 0; i < 9'000; ++i)
    lines += "c" + std::to_string(i) + " : BLE = add(before(c" + std::to_string((i + 1) % 9'000) +
             "), in)\n";
  chain.insert(chain.find("out : BLE"), lines);
  EXPECT_EQ(refusal_of(chain), "none");
}

TEST(ModelRules, HeadReadsNothingOfALayerButIn) {
  EXPECT_TRUE(refusal_of(with_line("final : BLE = turn(in, E, half 4)", "final : BLE = mul(in, g)"))
                  .starts_with("model_c1: "));
  EXPECT_EQ(refusal_of(with_line("final : BLE = turn(in, E, half 4)",
                                 "norm : BLE = in\nfinal : BLE = mul(norm, 2)")),
            "none");
}

}  // namespace
}  // namespace shardproof
