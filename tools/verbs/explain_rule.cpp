#include "tools/verbs/explain_rule.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/text/json_text.h"
#include "tools/text/wrapped.h"
#include "tools/verbs/rules.h"

namespace shardproof::tools {
namespace {

/// Returns the lines of `text` with `indent` before each.
std::string indented(const std::string& text, std::string_view indent) {
  std::string all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) all += fmt::format("{}{}\n", indent, line);
  return all;
}

/// Returns what introduces an example.
std::string_view introduced(const Rule& rule) {
  if (rule.kind == "command") return "An example";
  return rule.kind == "call" ? "No command has this error; a call of the library has it"
                             : "No file of one layer has this error; a program of a caller has it";
}

}  // namespace

nlohmann::json rule_json(const Rule& rule) {
  return {{"label", rule.label},       {"of", rule.subject},      {"says", rule.says},
          {"document", rule.document}, {"example", rule.example}, {"kind", rule.kind}};
}

int explain_rule(const std::string& label, bool json) {
  const Rule& rule = find_rule(label);
  if (json) {
    fmt::print("{}\n", json_text(rule_json(rule)));
    return 0;
  }
  fmt::print("{} ({})\n  {}\n\n{}\n{}", rule.label, rule.document, wrapped(rule.says, 76, "  "),
             introduced(rule), indented(rule.example, rule.kind == "command" ? "  $ " : "  "));
  const OpText* const op = find_op_text(rule.subject);
  if (op == nullptr) return 0;
  fmt::print("\nThe op {}: {}\n", op->name, wrapped(op->does, 72 - op->name.size(), "  "));
  fmt::print("  form     {}\n", wrapped(op->form, 68, "           "));
  fmt::print("  result   {}\n", wrapped(op->result, 68, "           "));
  fmt::print("{}Its rules\n", indented(op->example, "  as in    "));
  for (const Rule& other : all_rules())
    if (other.subject == op->name)
      fmt::print(
          "  {}  {}\n", other.label,
          wrapped(other.says, 74 - other.label.size(), std::string(other.label.size() + 4, ' ')));
  return 0;
}

int print_rules_page() {
  fmt::print(
      "# Labels of errors\n\nMade by `shardproof list rules --markdown`. Each command ends with\n"
      "the error beside it.\n");
  std::string document;
  const OpText* op = nullptr;
  for (const Rule& rule : all_rules()) {
    const OpText* const of = find_op_text(rule.subject);
    if (rule.document != document) fmt::print("\n## {}\n", rule.document);
    if (of != nullptr && of != op)
      fmt::print("\n### {}\n\n`{}` {}; its result: {}.\n\n{}", of->name, of->form, of->does,
                 of->result, indented(of->example, "    "));
    if (rule.document != document || of != op)
      fmt::print("\n| label | what must hold | what breaks it |\n|---|---|---|\n");
    document = rule.document, op = of;
    std::string example;
    for (const char c : rule.example)
      example += c == '|' ? "\\|" : c == '\n' ? " ``<br>`` " : std::string(1, c);
    fmt::print("| `{}` | {}{} | {} |\n", rule.label,
               of != nullptr || rule.subject.empty() ? "" : rule.subject + ": ", rule.says,
               rule.kind == "call" ? example : "`` " + example + " ``");
  }
  return 0;
}

}  // namespace shardproof::tools
