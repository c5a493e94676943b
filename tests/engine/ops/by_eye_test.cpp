// Ops on operands and with results that a table writes out.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/run_program.h"
#include "tests/engine/text_rows.h"
#include "tests/engine/written_values.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> all;
  for (const std::string& word : parts_of(text, " ")) {
    if (word.empty()) continue;
    char* end = nullptr;
    all.push_back(std::strtod(word.c_str(), &end));
    if (*end != '\0') refuse_word(word, text);
  }
  return all;
}

/// The type of a value: "[int] LAYOUT EXTENTS".
struct Written {
  bool integer;
  std::string layout;
  Shape shape;
};

Written type_of(const std::string& text) {
  std::vector<std::string> words = parts_of(text, " ");
  Written type{words[0] == "int", "", {}};
  if (type.integer) words.erase(words.begin());
  if (words.size() < 2) refuse_word(words.empty() ? "" : words[0], text);
  for (const std::string& extent : parts_of(words.back(), "x")) {
    if (extent.empty() || extent.find_first_not_of("0123456789") != std::string::npos)
      refuse_word(words.back(), text);
    type.shape.push_back(std::stoll(extent));
  }
  words.pop_back();
  type.layout = fmt::format("{}", fmt::join(words, " "));
  return type;
}

/// An operand "[int] LAYOUT EXTENTS [= NUMBERS]".
SharedValue operand(const std::string& text, const Torus& torus) {
  const std::vector<std::string> sides = parts_of(text, "=");
  if (sides.size() > 2) refuse_word(sides[2], text);
  const auto [integer, layout, shape] = type_of(sides[0]);
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

/// Holds a result against "[int] LAYOUT EXTENTS: NUMBERS, NUMBERS, ..." or "...: all NUMBERS".
void expect_written(const Sharded& result, const std::string& text) {
  const std::vector<std::string> sides = parts_of(text, ":");
  if (sides.size() != 2) refuse_word(sides.back(), text);
  const auto [integer, layout, shape] = type_of(sides[0]);
  EXPECT_EQ(result.stores_int32(), integer) << text;
  EXPECT_EQ(result.layout().to_string(), layout);
  EXPECT_EQ(result.shape(), shape) << text;
  const auto found = numbers_of(result);
  const std::vector<std::string> of_chips = parts_of(sides[1], ",");
  const bool alike = of_chips[0].starts_with("all ");
  ASSERT_TRUE(alike ? of_chips.size() == 1 : of_chips.size() == found.size()) << text;
  for (std::size_t chip = 0; chip < found.size(); ++chip) {
    const auto want = numbers_of(alike ? of_chips[0].substr(4) : of_chips[chip]);
    ASSERT_EQ(found[chip].size(), want.size()) << text;
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint64_t>(found[chip][i]), std::bit_cast<std::uint64_t>(want[i]))
          << "chip " << chip << " has " << found[chip][i] << ", not " << want[i];
  }
}

std::vector<Sharded> results_of(const TextRow& row) {
  const Torus torus = row[3].empty() ? kOne : Torus::parse(row[3]);
  std::vector<SharedValue> operands;
  for (const std::string& text : parts_of(row[1], ";")) operands.push_back(operand(text, torus));
  std::vector<Sharded> results;
  for (const std::string& call : parts_of(row[0], "then")) {
    const OpRow* const op = find_op(call.substr(0, call.find('(')));
    if (op == nullptr) refuse_word(call, row[0]);
    results = run_op_results(call, operands, static_cast<std::size_t>(op->results));
    operands = {shared(results[0])};
  }
  return results;
}

void expect_row(const TextRow& row) {
  if (row.columns.size() > 4) refuse_word(row[4], row[0]);
  const std::vector<std::string> want = parts_of(row[2], ";");
  std::vector<Sharded> results;
  const std::string label = label_of([&] { results = results_of(row); });
  if (want[0].starts_with("!")) {
    EXPECT_EQ(label, want[0].substr(2));
    return;
  }
  EXPECT_EQ(label, "");
  ASSERT_EQ(results.size(), want.size()) << row[2];
  for (std::size_t i = 0; i < results.size(); ++i)
    if (want[i] != "?") expect_written(results[i], want[i]);
}

TEST(ByEye, OpsYieldWhatIsWritten) {
  for (const TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/ops", "by_eye.txt")) {
    SCOPED_TRACE(row.place + " " + row[0]);
    expect_row(row);
  }
}

/// A row with another result or refusal than `scale` has.
TextRow row_with(const std::string& result) {
  return {{"scale(t, s)", "BF_y 1x2 = -0 3 ; F_y 2 = 10 100", result, "1x2x1"}, ""};
}

TEST(ByEye, WhatIsWrittenOtherwiseFails) {
  expect_row(row_with("BF_y 1x2: -0, 300"));
  for (const char* wrong :
       {"BF_y 1x2: 0, 300", "BF_y 1x2: -0, 301", "BF_y 1x2: -0 0, 300", "BF_y 1x2: -0",
        "BF_y 1x2: all -0", "BF_y 2x1: -0, 300", "BF_y 2: -0, 300", "BF 1x2: -0, 300",
        "B_yF 1x2: -0, 300", "BF_y partialsum-x 1x2: -0, 300", "int BF_y 1x2: 0, 300",
        "BF_y 1x2: -0, 300 ; ?", "! scale_c1"}) {
    testing::TestPartResultArray failures;
    {
      const testing::ScopedFakeTestPartResultReporter here(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      expect_row(row_with(wrong));
    }
    EXPECT_GT(failures.size(), 0) << wrong;
  }
}

TEST(ByEye, UnknownWordsAreRefused) {
  for (const char* wrong :
       {"BF_y 1x2: x, 300", "BF_y 1x2: 0x, 300", "BF_y 1xE: -0, 300", "BF_y: -0, 300",
        "int: -0, 300", "BF_y 1x2", "BF_y 1x2: -0: 300", "", "??"})
    EXPECT_THROW(expect_row(row_with(wrong)), std::invalid_argument) << wrong;
  const TextRow right = row_with("BF_y 1x2: -0, 300");
  for (const auto& [column, wrong] : {std::pair<std::size_t, const char*>{0, "skale(t, s)"},
                                      {1, "BF_y 1x2 = -0 y ; F_y 2 = 10 100"},
                                      {1, "BF_y 1x2 = -0 3 = 7 ; F_y 2"},
                                      {1, "BF_y 1x2 = -0 3 ; F_y 2 = 10 100 ; 7"}}) {
    TextRow row = right;
    row.columns.at(column) = wrong;
    EXPECT_THROW(expect_row(row), std::invalid_argument) << wrong;
  }
  TextRow longer = right;
  longer.columns.emplace_back("more");
  EXPECT_THROW(expect_row(longer), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
