// Ops on operands and with results that a table writes out.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/engine/run_program.h"
#include "tests/engine/text_rows.h"
#include "tests/engine/written_values.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> all;
  for (const std::string& word : parts_of(text, " "))
    if (!word.empty()) all.push_back(std::strtod(word.c_str(), nullptr));
  return all;
}

/// An operand "[int] LAYOUT EXTENTS [= NUMBERS]".
SharedValue operand(const std::string& text, const Torus& torus) {
  const std::vector<std::string> sides = parts_of(text, "="), words = parts_of(sides[0], " ");
  const bool integer = words[0] == "int";
  const std::string& layout = words.at(integer ? 1 : 0);
  Shape shape;
  for (const std::string& extent : parts_of(words.at(integer ? 2 : 1), "x"))
    shape.push_back(std::stoll(extent));
  const std::vector<double> given = numbers_of(sides.size() > 1 ? sides[1] : "");
  if (integer) return shared(integers(layout.c_str(), shape, {given.begin(), given.end()}, torus));
  return shared(values(layout.c_str(), shape, {given.begin(), given.end()}, torus));
}

/// The numbers of each chip, of whichever type.
std::vector<std::vector<double>> numbers_of(const Sharded& value) {
  std::vector<std::vector<double>> all;
  const auto add = [&](const auto& chips) {
    for (const auto& chip : chips) all.emplace_back(chip.begin(), chip.end());
  };
  if (value.holds_partial())
    add(value.partial().values);
  else if (value.stores_int32())
    add(value.i32());
  else
    add(value.f32());
  return all;
}

/// Holds a result against "LAYOUT: NUMBERS, NUMBERS, ..." or "LAYOUT: all NUMBERS".
void expect_written(const Sharded& result, const std::string& text) {
  const std::vector<std::string> sides = parts_of(text, ":");
  EXPECT_EQ(result.layout().to_string(), sides.at(0));
  const auto found = numbers_of(result);
  const std::vector<std::string> of_chips = parts_of(sides.at(1), ",");
  const bool alike = of_chips[0].starts_with("all ");
  ASSERT_TRUE(alike || of_chips.size() == found.size()) << text;
  for (std::size_t chip = 0; chip < found.size(); ++chip) {
    const auto want = numbers_of(alike ? of_chips[0].substr(4) : of_chips[chip]);
    ASSERT_EQ(found[chip].size(), want.size()) << text;
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(found[chip][i], want[i]) << "chip " << chip;
  }
}

std::vector<Sharded> results_of(const TextRow& row) {
  const Torus torus = row[3].empty() ? kOne : Torus::parse(row[3]);
  std::vector<SharedValue> operands;
  for (const std::string& text : parts_of(row[1], ";")) operands.push_back(operand(text, torus));
  std::vector<Sharded> results;
  for (const std::string& call : parts_of(row[0], "then")) {
    const auto count = static_cast<std::size_t>(find_op(call.substr(0, call.find('(')))->results);
    results = run_op_results(call, operands, count);
    operands = {shared(results[0])};
  }
  return results;
}

TEST(ByEye, OpsYieldWhatIsWritten) {
  for (const TextRow& row : text_rows(SHARDPROOF_ENGINE_TESTS "/ops", "by_eye.txt")) {
    SCOPED_TRACE(row.place + " " + row[0]);
    std::vector<Sharded> results;
    const std::string label = label_of([&] { results = results_of(row); });
    const std::vector<std::string> want = parts_of(row[2], ";");
    EXPECT_EQ(label, want[0].starts_with("!") ? want[0].substr(2) : "");
    for (std::size_t i = 0; i < results.size(); ++i)
      if (want.at(i) != "?") expect_written(results[i], want[i]);
  }
}

}  // namespace
}  // namespace shardproof
