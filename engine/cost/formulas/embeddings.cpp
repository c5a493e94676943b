#include "engine/cost/formulas/embeddings.h"

#include <fmt/format.h>

namespace shardproof::cost {

NumberFormat embeddings_beside(NumberFormat weights) {
  return weights == NumberFormat::int8 ? NumberFormat::bf16 : weights;
}

int bytes_of_weight(const WeightRow& row, NumberFormat weights) {
  const bool embeds = row.kind == WeightKind::matrix && !row.per_layer;
  return bytes_of(row.wire({.weights = embeds ? embeddings_beside(weights) : weights}));
}

std::string embeddings_note(NumberFormat weights) {
  const NumberFormat beside = embeddings_beside(weights);
  if (beside == weights) return "";
  return fmt::format("{} weights: embedding and unembedding are {}, as in the paper's runs",
                     to_string(weights), to_string(beside));
}

}  // namespace shardproof::cost
