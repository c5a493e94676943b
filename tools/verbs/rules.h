#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardproof::tools {

/// The files of tools/verbs/rules/, embedded verbatim.
extern const std::vector<std::string_view> kRuleTexts;

/// A rule whose breach is an Error with its label: a record of tools/verbs/rules/.
struct Rule {
  std::string label;     ///< all_gather_c3
  std::string subject;   ///< what the rule constrains: an op, "layout", or ""
  std::string says;      ///< "they are its minor-most suffix, in that order"
  std::string document;  ///< the page that says more: docs/typing.md, "Collectives"
  /// An input that ends with this error: shell commands, which exit with code 2. Where none does,
  /// a call of the library, or a program that no file of one layer may hold.
  std::string example;
  std::string kind;  ///< of the example: command, call, program
};

/// Returns every rule that labels an Error, in the order of the table.
const std::vector<Rule>& all_rules();

/// Returns the rule. Throws Error("explain_c3", ...) naming the nearest if there is none.
const Rule& find_rule(const std::string& label);

/// Documentation of an op of the program language.
struct OpText {
  std::string name;
  std::string form;     ///< "all_gather(t, E, zy)", alternatives joined by " or "
  std::string does;     ///< "removes the minor-most axes of a dim"
  std::string result;   ///< "zy removed from E.axes"
  std::string example;  ///< "xg : BLE_x = all_gather(x, E, zy) is in", a line each
};

/// Returns every op, in the order of the table.
const std::vector<OpText>& all_op_texts();

/// Returns the op whose name is `subject`, or nullptr.
const OpText* find_op_text(const std::string& subject);

}  // namespace shardproof::tools
