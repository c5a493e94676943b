#pragma once

#include <cstdint>

#include "weights/model/model_config.h"

namespace shardproof::cost {

/// A model's parameters by group; those of layers are summed over all layers. RoPE tables, ALiBi
/// slopes and int8 scales are derived from others and do not count.
struct Parameters {
  std::int64_t embedding = 0;    ///< VE
  std::int64_t unembedding = 0;  ///< VE where untied, else 0
  std::int64_t query = 0;        ///< EHQ
  std::int64_t key_value = 0;    ///< EKQ, twice
  std::int64_t output = 0;       ///< HQE
  std::int64_t ffn_in = 0;       ///< EF, twice for a gated FFN
  std::int64_t ffn_out = 0;      ///< FE
  std::int64_t norms = 0;        ///< gains and biases of norms
  std::int64_t biases = 0;       ///< biases of contractions and of the logits

  /// The matrices of all layers: what each token is multiplied with, apart from the unembedding.
  std::int64_t of_layers() const { return query + key_value + output + ffn_in + ffn_out; }
  /// The papers' count (N of paper §2): matrices and tables, without norms and biases.
  std::int64_t matrices() const { return embedding + unembedding + of_layers(); }
  std::int64_t total() const { return matrices() + norms + biases; }

  bool operator==(const Parameters&) const = default;
};

/// Counts the parameters from the registry's rows (weights/model/registry.h).
Parameters parameters_of(const ModelConfig& model);

}  // namespace shardproof::cost
