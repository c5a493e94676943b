#include "oracle/walk/passes.h"

#include <fmt/format.h>

namespace shardproof::oracle::graph {

Tokens tokens_of(const PassPlan& pass, const IntTensor& ids) {
  Tokens tokens{ids.shape,
                {ids.data.begin(), ids.data.end()},
                {},
                {},
                pass.prefix.length + pass.cached + pass.L};
  for (const PassRows& group : pass.rows)
    for (std::int64_t row = 0; row < group.rows; ++row) {
      tokens.tokens.push_back(group.tokens);
      for (std::int64_t i = 0; i < pass.L; ++i) tokens.positions.push_back(group.start + i);
    }
  return tokens;
}

std::string value_id(const std::string& pass, std::int64_t layer, const std::string& name) {
  return layer < 0 ? pass + "." + name : fmt::format("{}.layer{}.{}", pass, layer, name);
}

}  // namespace shardproof::oracle::graph
