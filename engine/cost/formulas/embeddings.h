#pragma once

#include <string>

#include "weights/model/numerics.h"
#include "weights/model/registry.h"

namespace shardproof::cost {

/// Returns the type of embedding and unembedding if W matrices have type `weights`: the same type,
/// but bf16 beside int8 codes, as in the paper's runs. The engine's own arithmetic uses f32 there
/// (docs/spec.md section 2.4), and its ledger counts f32.
NumberFormat embeddings_beside(NumberFormat weights);

/// Returns the bytes per element of a weight in a chip's memory if W matrices have type `weights`.
int bytes_of_weight(const WeightRow& row, NumberFormat weights);

/// Returns "int8 weights: embedding and unembedding are bf16, as in the paper's runs"; "" if they
/// have the type of the matrices.
std::string embeddings_note(NumberFormat weights);

}  // namespace shardproof::cost
