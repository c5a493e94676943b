#include "tools/verbs/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "weights/base/error.h"
#include "weights/model/model_config.h"

namespace shardproof::tools {
namespace {

/// The records of tools/verbs/rules/. A line's first word says what it is; lines that begin with
/// two blanks go on with it, and "#" is a comment. `page` and `of` stand for all rules up to the
/// next.
class Table {
 public:
  Table() {
    for (const std::string_view text : kRuleTexts) {
      std::istringstream lines{std::string(text)};
      for (std::string line; std::getline(lines, line);) read(line);
      end_record();
    }
  }

  std::vector<Rule> rules;
  std::vector<OpText> ops;

 private:
  /// Keeps a line until the next one that does not go on with it.
  void read(const std::string& line) {
    if (line.starts_with("  ")) {
      record_ += line.substr(1);
      return;
    }
    end_record();
    if (!line.starts_with('#')) record_ = line;
  }

  void end_record() {
    const std::size_t space = std::min(record_.find(' '), record_.size());
    const std::string key = record_.substr(0, space);
    const std::string text = record_.substr(std::min(space + 1, record_.size()));
    record_.clear();
    if (key.empty()) return;
    if (key == "page")
      page_ = text, subject_ = "";
    else if (key == "of")
      subject_ = text;
    else if (key == "op")
      subject_ = text, ops.push_back({text, "", "", "", ""});
    else if (key.ends_with(':'))
      rules.push_back({key.substr(0, key.size() - 1), subject_, text, page_, "", ""});
    else
      add_line(field_of(key), key, text);
  }

  std::string& field_of(const std::string& key) {
    if (key == "form") return ops.back().form;
    if (key == "does") return ops.back().does;
    if (key == "result") return ops.back().result;
    if (key == "example") return ops.back().example;
    if (key != "$" && key != "step" && key != "call" && key != "program")
      throw std::logic_error("no record of a rule has the line " + key);
    rules.back().kind = key == "call" || key == "program" ? key : "command";
    return rules.back().example;
  }

  /// Adds a line to a field; of a step it is a command that adds the step to a layer, as its first
  /// or its last but one line.
  static void add_line(std::string& field, const std::string& key, const std::string& text) {
    constexpr std::string_view kRead = " | shardproof verify --program /dev/stdin";
    if (key != "step") {
      field += (field.empty() ? "" : "\n") + text;
      return;
    }
    field = field.empty() ? "shardproof explain ws2d:batch --text | sed"
                          : field.substr(0, field.size() - kRead.size());
    field += fmt::format(" -e '{} {}'{}", text.starts_with("input ") ? "1i" : "$i", text, kRead);
  }

  std::string record_, page_, subject_;
};

const Table& table() {
  static const Table all;
  return all;
}

}  // namespace

const std::vector<Rule>& all_rules() { return table().rules; }

const std::vector<OpText>& all_op_texts() { return table().ops; }

const OpText* find_op_text(const std::string& subject) {
  for (const OpText& op : all_op_texts())
    if (op.name == subject) return &op;
  return nullptr;
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

}  // namespace shardproof::tools
