#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/numeric/contract.h"
#include "weights/storage/weights.h"

namespace shardproof::oracle {

/// A W matrix as numerics.weights stores it, ready to be contracted: one column per output channel.
struct Matrix {
  Vectors columns;                    ///< the weights, or the int8 codes
  const Tensor* scales = nullptr;     ///< of int8, one per column; else null
  std::vector<const Tensor*> biases;  ///< added in this order, in f32
};

/// The gain of a norm, and its bias if the model has one.
struct NormWeights {
  const Tensor* gain = nullptr;
  const Tensor* bias = nullptr;
};

/// Named after the checkpoint each one makes. A parallel block has block_out, a serial one norm2,
/// attn_out and ffn_out; a plain FFN has no up.
struct LayerWeights {
  NormWeights norm;
  std::optional<NormWeights> norm2;
  Matrix q, k, v, gate;
  std::optional<Matrix> up, block_out, attn_out, ffn_out;
};

/// All the weights, as numerics.weights stores them; null where the model has none.
struct Model {
  /// `weights` as as_stored() returns them. They must outlive it: it sees them where they are, but
  /// for two matrices that are one contraction.
  explicit Model(const Weights& weights);

  ModelConfig config;
  const Tensor& table;  ///< V x E
  std::vector<LayerWeights> layers;
  NormWeights final_norm;
  Vectors unembed;             ///< one vector of E per token; unscaled
  const Tensor* unembed_bias;  ///< one per token
  const Tensor *cos, *sin;     ///< position x pair; none without RoPE
  const Tensor* slopes;        ///< of ALiBi, one per query head; none without
};

}  // namespace shardproof::oracle
