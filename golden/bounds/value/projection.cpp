#include "golden/bounds/value/projection.h"

#include <algorithm>

#include "weights/base/detail/index.h"

namespace shardproof::bounds {

Projection projection_of(std::string_view name, const ModelConfig& config) {
  const Projection::Term attn{"attn", "wo", "HQ"}, ffn{"hidden", "w_out", "F"};
  const std::string norm = config.block == Block::serial ? "norm2" : "norm";
  if (name == "q") return {{{"norm", "wq", "E"}}, {"bq"}};
  if (name == "k") return {{{"norm", "wk", "E"}}, {"bk"}};
  if (name == "v") return {{{"norm", "wv", "E"}}, {"bv"}};
  if (name == "gate") return {{{norm, "w_gate", "E"}}, {"b_gate"}};
  if (name == "up") return {{{norm, "w_up", "E"}}, {"b_up"}};
  if (name == "attn_out") return {{attn}, {"bo"}};
  if (name == "ffn_out") return {{ffn}, {"b_out"}};
  if (name == "block_out") return {{attn, ffn}, {"bo", "b_out"}};
  if (name == "logits")
    return {{{"final_norm", config.tied ? "embed" : "unembed", "E"}}, {"unembed_bias"}};
  return {};
}

std::vector<std::size_t> rows_of_logits(const PassPlan& pass, std::size_t L) {
  std::vector<std::size_t> rows;
  for (const PassRows& group : pass.rows)
    for (std::int64_t r = 0; r < group.rows; ++r)
      rows.push_back(rows.size() * L + at(std::max<std::int64_t>(group.tokens - 1, 0)));
  return rows;
}

}  // namespace shardproof::bounds
