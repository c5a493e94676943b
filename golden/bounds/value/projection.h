#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weights/model/model_config.h"
#include "weights/model/passes.h"

namespace shardproof::bounds {

/// A projection as its operands: a sum of products with one matrix or two, and biases.
struct Projection {
  /// An operand, the matrix that it meets, and the dims that they contract.
  struct Term {
    std::string operand, matrix, letters;
  };
  std::vector<Term> terms;
  std::vector<std::string> biases;  ///< added if the model has them
};

/// Returns the projection that a named value is: q, k, v, gate, up, attn_out, ffn_out, block_out or
/// logits; without terms for all other values.
Projection projection_of(std::string_view name, const ModelConfig& config);

/// Returns the rows of final_norm [BL] that logits are made of: each row's last token. A row
/// without tokens may read any place.
std::vector<std::size_t> rows_of_logits(const PassPlan& pass, std::size_t L);

}  // namespace shardproof::bounds
