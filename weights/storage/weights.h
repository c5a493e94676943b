#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/registry.h"

namespace shardproof {

/// Reads a weight of a name and shape; equal tensors each time.
using ReadWeight = std::function<Tensor(const std::string& name)>;

/// A model's weights, unsharded and row-major, by registry name. If stored as int8, the matrices
/// that have scales hold codes: whole numbers from -127 to 127. Copies share the tensors.
class Weights {
 public:
  /// Bytes of tensors that stay in memory after use: a layer of 7B with its tables.
  static constexpr std::size_t kRoom = std::size_t{2} << 30;

  /// Takes the tensors without validating them; `type` is f32 or int8.
  Weights(ModelConfig config, std::map<std::string, Tensor> tensors,
          NumberFormat type = NumberFormat::f32);
  /// Reads all weights, if they take no more than `room` bytes; otherwise each when it is asked
  /// for. Then memory has those that are lent, and of the others those used last, up to `room`
  /// bytes in all.
  Weights(ModelConfig config, std::map<std::string, Shape> shapes, ReadWeight read,
          NumberFormat type = NumberFormat::f32, std::size_t room = kRoom);

  const ModelConfig& config() const { return config_; }
  NumberFormat stored_type() const { return type_; }
  /// Returns the weight called `name`, e.g. "layer0.wq", which stays in memory as long as what is
  /// returned. From any thread. Throws Error("weights_name", ...) if there is none, and what
  /// reading it throws.
  std::shared_ptr<const Tensor> at(std::string_view name) const;
  /// The same; null if there is none.
  std::shared_ptr<const Tensor> find(std::string_view name) const;
  bool contains(std::string_view name) const;
  /// Returns the names in alphabetical order.
  std::vector<std::string> names() const;
  /// Returns the shape of a weight without reading it. Throws Error("weights_name", ...).
  const Shape& shape(std::string_view name) const;
  /// Returns whether weights are read when they are asked for.
  bool on_demand() const;
  /// Returns the bytes of weights on demand that stay in memory; 0 of others.
  std::size_t room() const;
  /// Returns copies of all tensors.
  std::map<std::string, Tensor> tensors() const;
  /// Returns the same tensors as those of another config.
  Weights with_config(ModelConfig config) const;
  /// Returns the weights of another config whose tensors are these after `change`, on demand if
  /// these are: then what follows is thrown by at(). Throws Error("weights_value", ...) if a
  /// changed element is not finite, and what `change` throws.
  Weights changed(ModelConfig config,
                  std::function<void(const std::string& name, Tensor& tensor)> change) const;

 private:
  class Store;

  ModelConfig config_;
  NumberFormat type_;
  std::shared_ptr<Store> store_;
};

/// Returns the bytes of f32 tensors that Weights of these specs have in memory at most while one
/// layer after the other is in use: all, or the larger of Weights::kRoom and a layer, and a tensor
/// that is being made.
double bytes_in_memory(const std::vector<WeightSpec>& specs);

/// Throws Error: "weights_name" (missing or surplus), "weights_shape" (names tensor, expected and
/// found shape), "weights_value" (a non-finite element, a code that is -0 or not a whole number
/// from -127 to 127, a scale that is not above 0: names tensor and index). Of weights that are read
/// on demand only names and shapes: who reads them validates each.
void validate(const Weights& weights);
/// Validates a tensor of weights stored as `type`; throws the same.
void validate(const WeightSpec& spec, const Tensor& tensor, NumberFormat type);

/// Returns the weights as the engine takes them: weights=bf16 rounds every W matrix and the table
/// to nearest even, but no norms, biases or RoPE tables (docs/spec.md section 1). weights=int8
/// leaves them unchanged: each chip quantizes its own shards when they are placed
/// (engine/ops/quantize.h). Throws Error("weights_int8", ...) if int8 weights are asked for as
/// another type, Error("weights_value", ...) if bf16 overflows (of weights on demand from at()).
Weights stored_as(const Weights& weights, NumberFormat type);

}  // namespace shardproof
