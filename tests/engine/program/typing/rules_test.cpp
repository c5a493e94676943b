// Every typing rule, by its label: for each condition that it states, one program that
// breaks that condition and no earlier one. Rows of the text files beside this one are
//   LABEL | program, its lines between " / " | message | extents of inputs, torus
// and those of "legal" have in place of the message the shapes that results have.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/program/program.h"
#include "engine/program/typing.h"
#include "tests/engine/text_rows.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

/// Rows of all files; every rule of rope holds of the interleaved one too.
std::vector<TextRow> rule_rows() {
  std::vector<TextRow> all;
  for (const char* file : {"notation.txt", "products.txt", "elements.txt", "attention.txt"})
    for (TextRow& row : text_rows(SHARDPROOF_SOURCE "/tests/engine/program/typing", file)) {
      all.push_back(row);
      if (!row[0].starts_with("rope_c")) continue;
      row.columns[0].replace(0, 4, "rope_interleaved");
      row.columns[1] = replaced(row[1], "= rope(", "= rope_interleaved(");
      all.push_back(row);
    }
  return all;
}

/// Parses and checks, with the usual extents for every input that names no shape. `words`: shapes
/// of inputs, and the torus.
std::map<std::string, Type> types_of(const std::string& text, const std::string& words = "") {
  static const std::map<char, std::int64_t> extents{
      {'B', 12}, {'L', 2},  {'M', 4},  {'N', 12}, {'T', 3},  {'E', 24},
      {'F', 24}, {'H', 12}, {'K', 12}, {'Q', 4},  {'V', 24}, {'C', 12},
      {'S', 3},  {'R', 4},  {'P', 9},  {'J', 2},  {'W', 12}};
  const Program program = parse_program("test", text);
  std::set<std::string> names{"torus"};
  for (const ValueDecl& input : program.inputs) names.insert(input.name);
  auto given = values_of(words, names);
  const Torus torus = Torus::parse(given.contains("torus") ? given["torus"] : "2x2x3");
  std::map<std::string, Shape> shapes;
  for (const ValueDecl& input : program.inputs) {
    if (shapes.contains(input.name)) continue;
    Shape& shape = shapes[input.name];
    if (given.contains(input.name))
      for (const std::string& extent : parts_of(given[input.name], "x"))
        shape.push_back(std::stoll(extent));
    else
      for (const Layout::Dim& dim : input.layout.dims()) shape.push_back(extents.at(dim.letter));
  }
  return check(program, shapes, torus);
}

TEST(TypingRules, AreEnforcedAndNameWhatBreaksThem) {
  for (const TextRow& row : rule_rows()) {
    SCOPED_TRACE(row.place);
    std::map<std::string, Type> types;
    const std::string message = message_of([&] { types = types_of(lines_of(row[1]), row[3]); });
    if (row[0] != "legal") {
      EXPECT_TRUE(matches(message, row[0] + ": " + row[2])) << message << "\n" << row[2];
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      continue;
    }
    EXPECT_EQ(message, "");
    std::set<std::string> names;
    for (const auto& [name, type] : types) names.insert(name);
    for (const auto& [name, shape] : values_of(row[2], names))
      EXPECT_EQ(fmt::format("{}", fmt::join(types.at(name).shape, "x")), shape) << name;
  }
}

TEST(TypingRules, UnknownWordsOfARowAreRefused) {
  const std::string program = "input x : BLE is in";
  EXPECT_EQ(types_of(program, "torus=1x1x1 x=2x3x4").at("x").shape, (Shape{2, 3, 4}));
  for (const char* words : {"y=2x3x4", "torsu=1x1x1", "x", "x=2x3x4 x=2x3x5"})
    EXPECT_THROW(types_of(program, words), std::invalid_argument) << words;
}

/// The labels of the table's typing rules, and the programs that break them where no command does.
std::map<std::string, std::string> documented() {
  std::map<std::string, std::string> programs;
  const std::regex rule("([a-z_]+_c[0-9]+): .*");
  for (const char* table : {"/typing.txt", "/local_ops.txt"}) {
    std::ifstream file(std::string(SHARDPROOF_SOURCE "/tools/verbs/rules") + table);
    EXPECT_TRUE(file) << table;
    std::stringstream joined;
    joined << file.rdbuf();
    std::istringstream lines(std::regex_replace(joined.str(), std::regex("\n  "), " "));
    std::string label;
    std::smatch found;
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_match(line, found, rule)) programs[label = found[1]] = "";
      if (line.starts_with("program ")) programs[label] += line.substr(8) + "\n";
    }
  }
  return programs;
}

TEST(RuleTable, NamesExactlyTheTypingRulesThatAreTested) {
  std::set<std::string> labels, tested;
  for (const auto& [label, program] : documented()) labels.insert(label);
  for (const TextRow& row : rule_rows())
    if (row[0] != "legal") tested.insert(row[0]);
  EXPECT_EQ(labels, tested);
}

TEST(RuleTable, HasProgramsThatBreakTheirRule) {
  int programs = 0;
  for (const auto& [label, text] : documented()) {
    if (text.empty()) continue;
    const std::string message = message_of([&, broken = text] { types_of(broken); });
    EXPECT_TRUE(message.starts_with(label + ": ")) << text << message;
    ++programs;
  }
  EXPECT_GE(programs, 15);
}

/// A value without dims cannot be declared in a program's text, only inferred.
TEST(TypingRules, RefuseANormOfAValueWithoutDims) {
  Op op;
  op.kind = OpKind::norm;
  op.args = {"x", "s", "g"};
  const Type scalar{Layout(), {}};
  const std::string message = message_of([&] {
    infer(op, {scalar, scalar, scalar}, Torus::parse("1x1x1"));
  });
  EXPECT_TRUE(message.starts_with("norm_c2: ")) << message;
}

TEST(TextRows, DotsOfAPatternStandForAnyText) {
  EXPECT_TRUE(matches("a: b c", "a: b c"));
  EXPECT_TRUE(matches("a: b c", "a: ..."));
  EXPECT_TRUE(matches("a: b c d", "a: ... c ..."));
  EXPECT_TRUE(matches("a: b c d", "... b ... d"));
  EXPECT_TRUE(matches("a: b d d", "a: ... d"));
  for (const char* wrong :
       {"a: b", "b ...", "... b", "a: ... e ...", "a: ... c ... b ...", "a: ... c d c d"})
    EXPECT_FALSE(matches("a: b c d", wrong)) << wrong;
}

}  // namespace
}  // namespace shardproof
