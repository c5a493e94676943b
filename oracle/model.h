#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/contract.h"
#include "weights/weights.h"

namespace shardproof::oracle {

/// A W matrix as numerics.weights stores it, ready to be contracted: one column per output channel.
struct Matrix {
  Vectors columns;             ///< the weights, or the int8 codes
  std::vector<float> scales;   ///< of int8, one per column; else empty
  std::vector<Tensor> biases;  ///< added in this order, in f32
};

/// The gain of a norm, and its bias if the model has one.
struct NormWeights {
  Tensor gain;
  std::optional<Tensor> bias;
};

/// Named after the checkpoint each one makes. A parallel block has block_out, a serial one norm2,
/// attn_out and ffn_out; a plain FFN has no up.
struct LayerWeights {
  NormWeights norm;
  std::optional<NormWeights> norm2;
  Matrix q, k, v, gate;
  std::optional<Matrix> up, block_out, attn_out, ffn_out;
};

/// All the weights, as numerics.weights stores them.
struct Model {
  /// `weights` as as_stored() returns them.
  explicit Model(const Weights& weights);

  ModelConfig config;
  Tensor table;  ///< V x E
  std::vector<LayerWeights> layers;
  NormWeights final_norm;
  Vectors unembed;                     ///< one vector of E per token; unscaled
  std::optional<Tensor> unembed_bias;  ///< one per token
  std::optional<Tensor> cos, sin;      ///< position x pair; none without RoPE
  std::optional<Tensor> slopes;        ///< of ALiBi, one per query head; none without
};

}  // namespace shardproof::oracle
