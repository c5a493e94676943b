#pragma once

#include <cstdint>

#include "weights/model/model_config.h"

namespace shardproof::cost {

/// How many parameters a model has, by what they are of; those of layers in all layers together.
/// RoPE tables, ALiBi slopes and int8 scales follow from others and are none.
struct Parameters {
  std::int64_t embedding = 0;    ///< VE
  std::int64_t unembedding = 0;  ///< VE where untied, else 0
  std::int64_t query = 0;        ///< EHQ
  std::int64_t key_value = 0;    ///< EKQ, twice
  std::int64_t output = 0;       ///< HQE
  std::int64_t ffn_in = 0;       ///< EF, of a gated FFN twice
  std::int64_t ffn_out = 0;      ///< FE
  std::int64_t norms = 0;        ///< gains and biases of norms
  std::int64_t biases = 0;       ///< of contractions, the logits' too

  /// Of the matrices of all layers: what a token is multiplied with, beside the unembedding.
  std::int64_t of_layers() const { return query + key_value + output + ffn_in + ffn_out; }
  /// As papers count (N of paper §2): matrices and tables, no norms and biases.
  std::int64_t matrices() const { return embedding + unembedding + of_layers(); }
  std::int64_t total() const { return matrices() + norms + biases; }

  bool operator==(const Parameters&) const = default;
};

/// Counted from the registry's rows (weights/model/registry.h).
Parameters parameters_of(const ModelConfig& model);

}  // namespace shardproof::cost
