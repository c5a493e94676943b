// Programs as text, one statement per line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/program/detail/statement.h"
#include "engine/program/rethrow.h"
#include "weights/base/detail/words.h"

namespace shardproof {
namespace {

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
          c == '.'))
      return false;
  return true;
}

void parse_line(std::string_view line, int number, Program& program) {
  line = trim(line.substr(0, line.find('#')));
  if (line.empty()) return;
  const Statement statement(line, number);
  if (line.starts_with("output ")) {
    if (program.output_line.number != 0)
      throw statement.malformed("output is written once, and names all outputs of a program");
    for (std::string_view value : split(line.substr(7), ","))
      program.outputs.push_back(statement.name(value));
    program.output_line = {number};
    return;
  }
  const auto is = line.rfind(" is ");
  if (is == std::string_view::npos)
    throw statement.malformed("every value needs a role: end the line with 'is ROLE'");
  const std::string_view roles = line.substr(is + 4);
  const std::string_view before = trim(line.substr(0, is));
  if (before.starts_with("input ")) {
    ValueDecl input = statement.declaration(before.substr(6));
    input.role = statement.role(trim(roles));
    program.inputs.push_back(std::move(input));
    return;
  }
  const auto equals = before.find(" = ");
  if (equals == std::string_view::npos)
    throw statement.malformed("write NAME : LAYOUT = OP(ARGUMENTS) is ROLE");
  Op op = statement.op(trim(before.substr(equals + 3)));
  for (std::string_view declaration : split(before.substr(0, equals), ","))
    op.results.push_back(statement.declaration(declaration));
  const auto words = split(roles, ",");
  if (words.size() != op.results.size())
    throw statement.malformed(
        fmt::format("{} results but {} roles", op.results.size(), words.size()));
  for (std::size_t i = 0; i < words.size(); ++i) op.results[i].role = statement.role(words[i]);
  program.ops.push_back(std::move(op));
}

}  // namespace

Error Statement::malformed(std::string_view why) const {
  return Error("program_c0", fmt::format("'{}': {}", text_, why));
}

std::string Statement::name(std::string_view text) const {
  if (!is_name(text)) throw malformed(fmt::format("'{}' is not a valid name of a value", text));
  return std::string(text);
}

char Statement::letter(std::string_view text) const {
  if (text.size() != 1 || !Layout::is_letter(text[0]))
    throw malformed(fmt::format("'{}' is not a dim letter", text));
  return text[0];
}

std::pair<std::string_view, std::string_view> Statement::pair(std::string_view text,
                                                              std::string_view by) const {
  const auto parts = split(text, by);
  if (parts.size() != 2) throw malformed(fmt::format("'{}' must have the form A{}B", text, by));
  return {parts[0], parts[1]};
}

ValueDecl Statement::declaration(std::string_view text) const {
  const auto colon = text.find(" : ");
  if (colon == std::string_view::npos) throw malformed("write NAME : LAYOUT");
  ValueDecl result;
  result.name = name(trim(text.substr(0, colon)));
  result.layout = Layout::parse(trim(text.substr(colon + 3)));
  result.line = line_;
  return result;
}

Role Statement::role(std::string_view text) const {
  Role role = Role::parse(text);
  if (!is_name(role.name)) throw malformed(fmt::format("'{}' is not a valid role", text));
  return role;
}

Program parse_program(std::string_view name, std::string_view text, std::string_view file) {
  Program program;
  program.name = std::string(name);
  program.source.file = std::string(file);
  int number = 0;
  for (std::string_view line : split(text, "\n")) {
    try {
      parse_line(line, ++number, program);
    } catch (const Error& error) {
      if (file.empty()) rethrow_about(error, fmt::format("line {}: ", number));
      rethrow_about(error, program.where({number}), " (docs/program.md)");
    }
  }
  return program;
}

std::string print_program(const Program& program) {
  std::string text;
  for (const ValueDecl& input : program.inputs)
    text += fmt::format("input {} : {} is {}\n", input.name, input.layout.to_string(),
                        input.role.to_string());
  for (const Op& op : program.ops) {
    std::string declarations, roles;
    for (const ValueDecl& result : op.results) {
      const std::string_view comma = declarations.empty() ? "" : ", ";
      declarations += fmt::format("{}{} : {}", comma, result.name, result.layout.to_string());
      roles += fmt::format("{}{}", comma, result.role.to_string());
    }
    text += fmt::format("{} = {} is {}\n", declarations, op.to_string(), roles);
  }
  if (!program.outputs.empty())
    text += fmt::format("output {}\n", fmt::join(program.outputs, ", "));
  return text;
}

}  // namespace shardproof
