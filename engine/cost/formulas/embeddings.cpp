#include "engine/cost/formulas/embeddings.h"

#include <fmt/format.h>

namespace shardproof::cost {

WeightType embeddings_beside(WeightType weights) {
  return weights == WeightType::int8 ? WeightType::bf16 : weights;
}

double bytes_of_type(WeightType type) {
  return type == WeightType::f32 ? 4.0 : type == WeightType::bf16 ? 2.0 : 1.0;
}

int bytes_of_weight(const WeightRow& row, WeightType weights) {
  const bool embeds = row.kind == WeightKind::matrix && !row.per_layer;
  return bytes_of(row.wire({.weights = embeds ? embeddings_beside(weights) : weights}));
}

std::string embeddings_note(WeightType weights) {
  const WeightType beside = embeddings_beside(weights);
  if (beside == weights) return "";
  return fmt::format("{} weights: embedding and unembedding are {}, as in the paper's runs",
                     to_string(weights), to_string(beside));
}

}  // namespace shardproof::cost
