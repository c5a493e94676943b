#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// A model's weights, unsharded and row-major, by registry name. If stored as int8, the matrices
/// that have scales hold codes: whole numbers from -127 to 127. Copies share the tensors.
class Weights {
 public:
  /// Takes the tensors without validating them; `type` is f32 or int8.
  Weights(ModelConfig config, std::map<std::string, Tensor> tensors,
          NumberFormat type = NumberFormat::f32);

  const ModelConfig& config() const { return config_; }
  NumberFormat stored_type() const { return type_; }
  /// Returns the weight called `name`, e.g. "layer0.wq". Throws Error("weights_name", ...) if there
  /// is none.
  const Tensor& at(std::string_view name) const;
  const std::map<std::string, Tensor, std::less<>>& all() const { return *tensors_; }
  /// Returns the same tensors as those of another config.
  Weights with_config(ModelConfig config) const;

 private:
  ModelConfig config_;
  NumberFormat type_;
  std::shared_ptr<const std::map<std::string, Tensor, std::less<>>> tensors_;
};

/// Throws Error: "weights_name" (missing or surplus), "weights_shape" (names tensor, expected and
/// found shape), "weights_value" (a non-finite element, a code that is -0 or not a whole number
/// from -127 to 127, a scale that is not above 0: names tensor and index).
void validate(const Weights& weights);

/// Returns the weights as the engine takes them: weights=bf16 rounds every W matrix and the table
/// to nearest even, but no norms, biases or RoPE tables (docs/spec.md section 1). weights=int8
/// leaves them unchanged: each chip quantizes its own shards when they are placed
/// (engine/ops/quantize.h). Throws Error("weights_int8", ...) if int8 weights are asked for as
/// another type, Error("weights_value", ...) if bf16 overflows.
Weights stored_as(const Weights& weights, NumberFormat type);

}  // namespace shardproof
