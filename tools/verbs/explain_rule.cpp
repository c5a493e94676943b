#include "tools/verbs/explain_rule.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/text/json_text.h"
#include "tools/text/wrapped.h"
#include "tools/verbs/rules.h"

namespace shardproof::tools {

int explain_rule(const std::string& label, bool json) {
  const Rule& rule = find_rule(label);
  if (json) {
    fmt::print("{}\n", json_text({{"label", rule.label},
                                  {"of", rule.subject},
                                  {"says", rule.says},
                                  {"document", rule.document}}));
    return 0;
  }
  fmt::print("{} ({})\n  {}\n", rule.label, rule.document, wrapped(rule.says, 76, "  "));
  for (const OpText& op : all_op_texts()) {
    if (!rule.label.starts_with(op.name + "_c") || rule.label.size() != op.name.size() + 3)
      continue;
    fmt::print("\nThe op {}: {}\n", op.name, wrapped(op.does, 72 - op.name.size(), "  "));
    fmt::print("  form     {}\n", wrapped(op.form, 68, "           "));
    fmt::print("  result   {}\n", wrapped(op.result, 68, "           "));
    fmt::print("  example  {}\nIts rules\n", wrapped(op.example, 68, "           "));
    for (const Rule& other : all_rules())
      if (other.subject == rule.subject && other.document == rule.document &&
          other.label.starts_with(op.name + "_c"))
        fmt::print(
            "  {}  {}\n", other.label,
            wrapped(other.says, 74 - other.label.size(), std::string(other.label.size() + 4, ' ')));
  }
  return 0;
}

}  // namespace shardproof::tools
