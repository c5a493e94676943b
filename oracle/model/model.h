#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/numeric/contract.h"
#include "weights/storage/weights.h"

namespace shardproof::oracle {

/// A W matrix as stored by numerics.weights, ready for contraction: one column per output channel.
struct Matrix {
  Vectors columns;                    ///< the weights, or the int8 codes
  const Tensor* scales = nullptr;     ///< int8 only: one per column; otherwise null
  std::vector<const Tensor*> biases;  ///< added in this order, in f32
};

/// The gain of a norm, and its bias if the model has one.
struct NormWeights {
  const Tensor* gain = nullptr;
  const Tensor* bias = nullptr;
};

/// Weights of a layer, named after the checkpoints they produce. A parallel block has block_out, a
/// serial one norm2, attn_out and ffn_out; a plain FFN has no up.
struct LayerWeights {
  NormWeights norm;
  std::optional<NormWeights> norm2;
  Matrix q, k, v, gate;
  std::optional<Matrix> up, block_out, attn_out, ffn_out;
};

/// All weights as stored by numerics.weights; null where the model has none.
struct Model {
  /// Views `weights`, as returned by as_stored(), which must outlive the Model; only matrices that
  /// form one contraction are copied.
  explicit Model(const Weights& weights);

  ModelConfig config;
  const Tensor& table;  ///< V x E
  std::vector<LayerWeights> layers;
  NormWeights final_norm;
  Vectors unembed;             ///< one vector of E per token; unscaled
  const Tensor* unembed_bias;  ///< one per token
  const Tensor *cos, *sin;     ///< position x pair; null without RoPE
  const Tensor* slopes;        ///< ALiBi slopes, one per query head; null without
};

}  // namespace shardproof::oracle
