// docs/program.md and the examples of ops are held to their word: every statement parses, and no op
// or role is left out.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "engine/program/program.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Lines of blocks fenced as `program`, and code in backticks that reads as a statement.
std::vector<std::string> statements(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream lines(text);
  std::string block;
  static const std::regex code("`([^`]+)`");
  static const std::regex statement("(input|output) .*|.* : .* = .*[(].* is .*");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      block = block.empty() ? line.substr(3) + "." : "";
    } else if (block == "program.") {
      all.push_back(line);
    } else if (block.empty()) {
      for (std::sregex_iterator m(line.begin(), line.end(), code), end; m != end; ++m)
        if (std::regex_match((*m)[1].str(), statement)) all.push_back((*m)[1].str());
    }
  }
  return all;
}

/// The examples of ops in the tables that `shardproof list ops` prints.
std::vector<std::string> examples() {
  std::vector<std::string> all;
  for (const char* table : {"/typing.txt", "/local_ops.txt"}) {
    std::istringstream lines(
        std::regex_replace(text_of(std::string(SHARDPROOF_SOURCE "/tools/verbs/rules") + table),
                           std::regex("\n  "), " "));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("example ")) all.push_back(line.substr(8));
  }
  return all;
}

TEST(ProgramManual, EveryStatementParsesAndEveryOpHasOne) {
  std::set<OpKind> ops;
  std::set<Role::Kind> roles;
  int lines = 0;
  std::vector<std::string> all = statements(text_of(SHARDPROOF_SOURCE "/docs/program.md"));
  for (const std::string& example : examples()) all.push_back(example);
  for (const std::string& line : all) {
    try {
      const Program program = parse_program("manual", line);
      lines += print_program(program).empty() ? 0 : 1;
      EXPECT_EQ(parse_program("manual", print_program(program)), program) << line;
      for (const ValueDecl& input : program.inputs) roles.insert(input.role.kind);
      for (const Op& op : program.ops) {
        ops.insert(op.kind);
        for (const ValueDecl& result : op.results) roles.insert(result.role.kind);
      }
    } catch (const Error& error) {
      ADD_FAILURE() << line << "\n" << error.what();
    }
  }
  EXPECT_GE(lines, 45);
  for (const OpRow& op : all_ops())
    EXPECT_TRUE(ops.contains(op.kind)) << "no example of " << op.name;
  for (int kind = 0; kind <= static_cast<int>(Role::Kind::prefix); ++kind)
    EXPECT_TRUE(roles.contains(static_cast<Role::Kind>(kind))) << "role " << kind;
}

}  // namespace
}  // namespace shardproof
