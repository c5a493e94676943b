#pragma once

#include <string>
#include <vector>

#include "engine/ops/einsum.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// One step of a layer as the model's formulas have it (docs/spec.md section 2): whole values, no
/// layouts, no storage.
struct LogicalOp {
  enum class Kind {
    norm,      ///< operands {x}; statistics, gain and bias are its own
    einsum,    ///< operands {value, weight, ...}, one pair a term; then its scale and biases
    attend,    ///< operands {q, k, v}; rotation and cache are its own
    activate,  ///< operands {gate} or {gate, up}
    add        ///< operands {a, b}
  };
  Kind kind{};
  std::string result;  ///< "norm2", "q", ..., as tables and checkpoints name it; of attend "attn"
  std::vector<std::string> operands;
  EinsumSpec spec = {};
  std::string scale = {};                ///< "wq_scale", of int8 weights
  std::vector<std::string> biases = {};  ///< "bq"; those that the model has
};

/// The layer of a model, in the order in which it is computed.
std::vector<LogicalOp> logical_layer(const ModelConfig& config,
                                     WeightType weights = WeightType::f32);

}  // namespace shardproof
