#pragma once

#include <string>
#include <vector>

#include "engine/ops/einsum.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// One step of a layer in the model's formulas (docs/spec.md section 2): unsharded values, no
/// layouts, no storage.
struct LogicalOp {
  enum class Kind {
    norm,      ///< operands {x}; statistics, gain and bias are implied
    einsum,    ///< operands {value, weight, ...}, one pair per term; then its scale and biases
    attend,    ///< operands {q, k, v}; rotation and cache are implied
    activate,  ///< operands {gate} or {gate, up}
    add        ///< operands {a, b}
  };
  Kind kind{};
  std::string result;  ///< "norm2", "q", ..., the name in tables and checkpoints; "attn" for attend
  std::vector<std::string> operands;
  EinsumSpec spec = {};
  std::string scale = {};                ///< "wq_scale", with int8 weights
  std::vector<std::string> biases = {};  ///< "bq"; only biases that the model has
};

/// The ops of a model's layer, in execution order.
std::vector<LogicalOp> logical_layer(const ModelConfig& config,
                                     WeightType weights = WeightType::f32);

}  // namespace shardproof
