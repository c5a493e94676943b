#include "weights/storage/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "weights/base/bf16.h"
#include "weights/base/error.h"
#include "weights/model/registry.h"

namespace shardproof {
namespace {

// Formats the row-major position `flat` as an index: "[3, 0, 7]".
std::string index_text(const Shape& shape, std::size_t flat) {
  auto rest = static_cast<std::int64_t>(flat);
  Shape index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = rest % shape[i];
    rest /= shape[i];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

void require_finite(std::string_view name, const Tensor& tensor) {
  for (std::size_t i = 0; i < tensor.data.size(); ++i) {
    if (!std::isfinite(tensor.data[i])) {
      throw Error("weights_value", fmt::format("{}{} is {}; weights must be finite", name,
                                               index_text(tensor.shape, i), tensor.data[i]));
    }
  }
}

template <class Holds>
void require_each(const WeightSpec& spec, const Tensor& tensor, std::string_view rule,
                  Holds&& holds) {
  for (std::size_t i = 0; i < tensor.data.size(); ++i)
    if (!holds(tensor.data[i]))
      throw Error("weights_value", fmt::format("{}{} is {}; {}", spec.name,
                                               index_text(tensor.shape, i), tensor.data[i], rule));
}

}  // namespace

Weights::Weights(ModelConfig config, std::map<std::string, Tensor> tensors, NumberFormat type)
    : config_(std::move(config)), type_(type) {
  std::map<std::string, Tensor, std::less<>> of;
  of.merge(tensors);
  tensors_ = std::make_shared<const std::map<std::string, Tensor, std::less<>>>(std::move(of));
}

Weights Weights::with_config(ModelConfig config) const {
  Weights of = *this;
  of.config_ = std::move(config);
  return of;
}

const Tensor& Weights::at(std::string_view name) const {
  const auto found = tensors_->find(name);
  if (found == tensors_->end()) {
    throw Error("weights_name", fmt::format("{} has no weight {:?}", print_model(config_), name));
  }
  return found->second;
}

void validate(const Weights& weights) {
  const bool int8 = weights.stored_type() == NumberFormat::int8;
  const std::vector<WeightSpec> specs = weight_specs(weights.config(), weights.stored_type());
  std::map<std::string, const WeightSpec*, std::less<>> legal;
  for (const WeightSpec& spec : specs) legal.emplace(spec.name, &spec);
  for (const auto& [name, tensor] : weights.all()) {
    if (!legal.contains(name)) {
      throw Error("weights_name",
                  fmt::format("{:?} is not a weight of {}", name, print_model(weights.config())));
    }
  }
  for (const WeightSpec& spec : specs) {
    const auto found = weights.all().find(spec.name);
    if (found == weights.all().end()) {
      throw Error("weights_name",
                  fmt::format("{} of {} is missing", spec.name, print_model(weights.config())));
    }
    const Tensor& tensor = found->second;
    if (tensor.shape != spec.shape ||
        std::cmp_not_equal(tensor.data.size(), element_count(spec.shape))) {
      throw Error("weights_shape", fmt::format("{} must be {} [{}], it is [{}] with {} elements",
                                               spec.name, spec.dims, fmt::join(spec.shape, ", "),
                                               fmt::join(tensor.shape, ", "), tensor.data.size()));
    }
    require_finite(spec.name, tensor);
    if (int8 && spec.int8)
      require_each(spec, tensor, "a code is a whole number from -127 to 127", [](float code) {
        return std::abs(code) <= 127.0F && std::nearbyint(code) == code &&
               !(code == 0.0F && std::signbit(code));
      });
    if (spec.scale)
      require_each(spec, tensor, "a scale is above 0", [](float scale) { return scale > 0.0F; });
  }
}

Weights stored_as(const Weights& weights, NumberFormat type) {
  if (weights.stored_type() == NumberFormat::int8 && type != NumberFormat::int8)
    throw Error(
        "weights_int8",
        fmt::format("the weights are kept as int8, and the case says weights={}; legal: int8",
                    to_string(type)));
  if (type != NumberFormat::bf16) return weights;
  std::map<std::string, Tensor> tensors(weights.all().begin(), weights.all().end());
  for (const WeightSpec& spec : weight_specs(weights.config())) {
    if (!spec.matrix) continue;
    const auto found = tensors.find(spec.name);
    if (found == tensors.end()) continue;
    for (float& value : found->second.data) value = round_to_bf16(value);
    require_finite(spec.name + " as bf16: ", found->second);
  }
  return {weights.config(), std::move(tensors)};
}

}  // namespace shardproof
