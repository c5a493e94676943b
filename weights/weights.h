#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "weights/error.h"
#include "weights/model_config.h"
#include "weights/numerics.h"
#include "weights/tensor.h"

namespace shardproof {

/// A model's weights, unsharded and row-major, by registry name.
class Weights {
 public:
  Weights(ModelConfig config, std::map<std::string, Tensor> tensors);

  const ModelConfig& config() const { return config_; }
  /// The weight called `name`, e.g. "layer0.wq". Throws Error("weights_name", ...) if there is
  /// none.
  const Tensor& at(std::string_view name) const;
  const std::map<std::string, Tensor, std::less<>>& all() const { return tensors_; }

 private:
  ModelConfig config_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

/// Throws Error: "weights_name" (missing or surplus), "weights_shape" (names tensor, expected and
/// found shape), "weights_value" (a non-finite element: names tensor and index).
void validate(const Weights& weights);

/// The weights as weights=f32 or weights=bf16 uses them: bf16 rounds every W matrix and the table
/// to nearest even; norms, biases and RoPE tables stay (docs/spec.md section 1). Throws
/// Error("weights_int8", ...): int8 is not executed yet.
Weights stored_as(const Weights& weights, WeightType type);

}  // namespace shardproof
