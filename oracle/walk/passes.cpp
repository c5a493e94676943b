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

std::vector<std::int64_t> prefixes_of(const PassPlan& pass) {
  std::vector<std::int64_t> rows;
  for (std::int64_t b = 0; b < pass.batch(); ++b)
    rows.push_back(pass.prefix.of_row(b, pass.batch()));
  return rows;
}

OwnSlots::OwnSlots(const std::string& letters, const Shape& whole, std::int64_t before)
    : shape(whole) {
  if (before > 0) shape[letters.find('M')] -= before;
  places = places_in(letters, shape, letters, whole);
  for (size_t& place : places) place += static_cast<size_t>(before * step_of(letters, whole, 'M'));
}

}  // namespace shardproof::oracle::graph
