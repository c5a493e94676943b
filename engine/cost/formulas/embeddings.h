#pragma once

#include <string>

#include "weights/model/numerics.h"
#include "weights/model/registry.h"

namespace shardproof::cost {

/// What embedding and unembedding are kept as where W matrices are kept as `weights`: as they are,
/// and beside int8 codes bf16, as in the paper's runs. The engine's own arithmetic has f32 there
/// (docs/spec.md section 2.4), and its ledger counts that.
WeightType embeddings_beside(WeightType weights);

/// Bytes of an element in a chip's memory where W matrices are kept as `weights`.
int bytes_of_weight(const WeightRow& row, WeightType weights);

/// "int8 weights: embedding and unembedding are bf16, as in the paper's runs"; empty where they are
/// kept as the matrices are.
std::string embeddings_note(WeightType weights);

}  // namespace shardproof::cost
