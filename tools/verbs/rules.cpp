#include "tools/verbs/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "engine/program/program.h"
#include "tools/verbs/documents.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"

namespace shardproof::tools {
namespace {

std::string trim(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

/// Returns the cells of every row of every table, without separator rows.
std::vector<std::vector<std::string>> rows(std::string_view document) {
  std::vector<std::vector<std::string>> all;
  std::istringstream lines{std::string(document)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("|") || line.starts_with("|-")) continue;
    std::vector<std::string> cells;
    for (std::size_t at = 1, end = 0; (end = line.find('|', at)) != std::string::npos; at = end + 1)
      cells.push_back(trim(std::string_view(line).substr(at, end - at)));
    all.push_back(std::move(cells));
  }
  return all;
}

/// Converts Markdown to plain text: no backticks, and [a link](target) becomes its words.
std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`' || text[i] == '[') continue;
    if (text[i] == ' ' && out.ends_with(' ')) continue;
    if (text[i] == ']' && i + 1 < text.size() && text[i + 1] == '(')
      i = std::min(text.find(')', i), text.size() - 1);
    else
      out += text[i];
  }
  return out;
}

/// Returns the label "all_gather_c3" of a cell "`all_gather_c3`", if the cell is nothing but a
/// label.
std::optional<std::string> label_in(const std::string& cell) {
  if (cell.size() < 4 || cell.front() != '`' || cell.find('`', 1) != cell.size() - 1)
    return std::nullopt;
  std::string label = cell.substr(1, cell.size() - 2);
  const bool fits = std::all_of(label.begin(), label.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
  if (!fits || label.find('_') == std::string::npos) return std::nullopt;
  return label;
}

/// Parses the rules of one op: "`a_c1` text; `a_c2` text".
std::vector<Rule> rules_of_op(const std::string& cell, const std::string& op) {
  std::vector<Rule> all;
  for (std::size_t at = 0; at < cell.size();) {
    std::size_t end = cell.find("; `", at);
    end = std::min(end, cell.size());
    const std::string item = cell.substr(at, end - at);
    at = end + 2;
    const std::size_t space = std::min(item.find("` ") + 1, item.size());
    if (const auto label = label_in(item.substr(0, space)))
      all.push_back({*label, op, plain(trim(item.substr(space))), "docs/typing.md"});
  }
  return all;
}

std::vector<Rule> read_rules() {
  std::vector<Rule> all;
  std::map<std::string, std::size_t> known;
  const auto add = [&](Rule rule) {
    if (known.emplace(rule.label, all.size()).second) all.push_back(std::move(rule));
  };
  std::string subject;
  for (const auto& row : rows(kTypingDocument)) {
    if (row.size() == 3 && !row[0].empty()) subject = row[0];
    if (row.size() == 4)
      for (Rule& rule : rules_of_op(row[3], row[0])) add(std::move(rule));
    else if (const auto label = label_in(row.back()))
      add({*label, row.size() == 3 ? subject : "", plain(row[row.size() - 2]), "docs/typing.md"});
  }
  for (const auto& [document, name] :
       {std::pair{kProgramDocument, "docs/program.md"}, {kLayoutsDocument, "docs/layouts.md"}})
    for (const auto& row : rows(document))
      if (const auto label = label_in(row.back()); label && row.size() == 2)
        add({*label, "", plain(row[0]), name});
  for (const auto& row : rows(kErrorsDocument))
    if (const auto label = label_in(row.front()); label && row.size() == 2)
      add({*label, "", plain(row[1]), "docs/spec.md section 6.5"});
  // "as rope_c2" stands for the text of that rule.
  for (Rule& rule : all)
    if (const auto at = known.find(rule.says.substr(std::min<std::size_t>(3, rule.says.size())));
        rule.says.starts_with("as ") && at != known.end())
      rule.says = all[at->second].says;
  return all;
}

std::vector<OpText> read_ops() {
  std::vector<OpText> all;
  for (const OpRow& known : all_ops()) {
    OpText op;
    op.name = known.name;
    for (const auto& row : rows(kTypingDocument))
      if (row.size() == 4 && row[0] == op.name) op.form = row[1], op.result = plain(row[2]);
    for (const auto& row : rows(kProgramDocument))
      if (row.size() == 4 && row[0] == op.name) op.does = row[1], op.example = plain(row[2]);
    for (std::size_t at; (at = op.form.find("`, `")) != std::string::npos;)
      op.form.replace(at, 4, "` or `");
    op.form = plain(op.form);
    all.push_back(std::move(op));
  }
  return all;
}

}  // namespace

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> all = read_rules();
  return all;
}

const Rule& find_rule(const std::string& label) {
  std::vector<std::string> labels;
  for (const Rule& rule : all_rules()) {
    if (rule.label == label) return rule;
    labels.push_back(rule.label);
  }
  const std::string near = nearest(label, labels);
  throw Error("explain_c3",
              fmt::format("there is no rule '{}'{}; see shardproof list rules", label.substr(0, 60),
                          near.empty() ? "" : ", did you mean " + near + "?"));
}

const std::vector<OpText>& all_op_texts() {
  static const std::vector<OpText> all = read_ops();
  return all;
}

}  // namespace shardproof::tools
