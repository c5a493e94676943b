#pragma once

#include <string>
#include <vector>

namespace shardproof::tools {

/// A rule from the documents.
struct Rule {
  std::string label;     ///< all_gather_c3
  std::string subject;   ///< what the rule constrains: an op, "layout", or ""
  std::string says;      ///< "they are its minor-most suffix, in that order"
  std::string document;  ///< "docs/typing.md"
};

/// Returns every rule that labels an Error: of typing.md, program.md, layouts.md and spec.md
/// section 6.5, in their order.
const std::vector<Rule>& all_rules();

/// Returns the rule. Throws Error("explain_c3", ...) naming the nearest if there is none.
const Rule& find_rule(const std::string& label);

/// Documentation of an op of the program language.
struct OpText {
  std::string name;
  std::string form;     ///< "all_gather(t, E, zy)", alternatives joined by " or "
  std::string result;   ///< "zy removed from E.axes"
  std::string does;     ///< "removes the minor-most axes of a dim"
  std::string example;  ///< "xg : BLE_x = all_gather(x, E, zy) is in"
};

/// Returns every op of the code, in its order.
const std::vector<OpText>& all_op_texts();

}  // namespace shardproof::tools
