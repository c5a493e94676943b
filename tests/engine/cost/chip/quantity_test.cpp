#include "engine/cost/chip/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/engine/cost/cases.h"

namespace shardproof::cost {
namespace {

constexpr Measure kMeasures[] = {Measure::bytes, Measure::bytes_per_second,
                                 Measure::operations_per_second, Measure::seconds, Measure::none};

constexpr const char* kCases = "chip/quantities.txt";

/// "bandwidth" is bytes per second; a text in quotes has its blanks.
Measure measure_of(const CaseLine& line) {
  constexpr std::string_view kNames[] = {"bytes", "bandwidth", "operations", "seconds", "none"};
  const auto at = std::find(std::begin(kNames), std::end(kNames), line.text(1));
  return kMeasures[at - std::begin(kNames)];
}
std::string unquoted(std::string text) {
  std::erase(text, '"');
  return text;
}

TEST(CaseLines, OfNoKindAndOfNoNumberAreRefused) {
  const auto read = [](const std::string& text) {
    std::istringstream lines(text);
    return case_lines(lines, "a", {"a", "b"});
  };
  EXPECT_EQ(read("# c\na | 1\n  | 2\nb | 3\n").at(0).fields, (std::vector<std::string>{"1", "2"}));
  EXPECT_THROW(read("a | 1\nc | 2\n"), std::invalid_argument);
  EXPECT_THROW(case_lines("no.txt", "a"), std::out_of_range);
  const CaseLine line = read("a | 1.5 | 2 | 2x | two | 1.5 s\n").at(0);
  EXPECT_EQ(line.number(0), 1.5);
  EXPECT_EQ(line.whole(1), 2);
  for (const std::size_t field : {2U, 3U, 4U}) {
    EXPECT_THROW(line.number(field), std::invalid_argument) << line.text(field);
    EXPECT_THROW(line.whole(field), std::invalid_argument) << line.text(field);
  }
  EXPECT_THROW(line.whole(0), std::invalid_argument);
  EXPECT_THROW(line.text(5), std::out_of_range);
}

TEST(Quantity, ReadsNumbersWithTheirUnits) {
  for (const CaseLine& line : case_lines(kCases, "read"))
    EXPECT_EQ(parse_quantity(unquoted(line.text(0)), measure_of(line)), line.number(2))
        << line.text(0);
}

TEST(Quantity, RefusesOtherUnitsAndNumbersAndNamesTheNearest) {
  expect_refusals(kCases, "refuse", [](const CaseLine& line) {
    parse_quantity(unquoted(line.text(0)), measure_of(line));
  });
}

TEST(Quantity, NamesTheNearestLegalNumber) {
  for (const CaseLine& line : case_lines(kCases, "nearest")) {
    const QuantityLimits limits =
        line.fields.size() == 3 ? QuantityLimits{} : QuantityLimits{line.number(3), line.number(4)};
    const std::string said =
        message_of([&] { parse_quantity(line.text(0), measure_of(line), limits); });
    const std::string near = said.substr(said.find("nearest legal: ") + 15);
    EXPECT_NO_THROW(parse_quantity(near, measure_of(line), limits)) << said;
    EXPECT_EQ(near, line.text(2)) << line.text(0);
  }
}

TEST(Quantity, PrintsTheShortestText) {
  for (const CaseLine& line : case_lines(kCases, "print"))
    EXPECT_EQ(print_quantity(line.number(0), measure_of(line)), line.text(2));
  for (const CaseLine& line : case_lines(kCases, "round"))
    EXPECT_EQ(rounded_quantity(line.number(0), measure_of(line)), line.text(2));
}

RC_GTEST_PROP(Quantity, IsReadAsItWasPrinted, ()) {
  const auto measure =
      *rc::gen::elementOf(std::vector<Measure>(std::begin(kMeasures), std::end(kMeasures)));
  const int exponent = *rc::gen::inRange(-30, 70);
  const int mantissa = *rc::gen::inRange(1, 1 << 30);
  const double value = std::ldexp(mantissa, exponent - 20);
  const std::string text = print_quantity(value, measure);
  RC_ASSERT(parse_quantity(text, measure) == value);
}

}  // namespace
}  // namespace shardproof::cost
