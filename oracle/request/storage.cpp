#include "oracle/request/storage.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "oracle/numeric/detail/functions.h"
#include "weights/model/registry.h"

namespace shardproof::oracle {

namespace {

/// Replaces matrices with the same output channels by their codes, and returns the scales: one per
/// channel, over all the matrices.
std::vector<float> quantize(const std::vector<Tensor*>& matrices, std::size_t channels) {
  std::vector<float> scales(channels);
  for (std::size_t j = 0; j < channels; ++j) {
    double absmax = 0;
    for (const Tensor* matrix : matrices)
      for (std::size_t at = j; at < matrix->data.size(); at += channels)
        absmax = std::max(absmax, std::abs(static_cast<double>(matrix->data[at])));
    scales[j] = static_cast<float>(absmax / 127.0);
    if (scales[j] == 0) scales[j] = 1;
    for (Tensor* matrix : matrices)
      for (std::size_t at = j; at < matrix->data.size(); at += channels) {
        const double code =
            std::nearbyint(static_cast<double>(matrix->data[at]) / static_cast<double>(scales[j]));
        // A code is an integer and has no -0.
        matrix->data[at] = code == 0 ? 0.0F : static_cast<float>(std::clamp(code, -127.0, 127.0));
      }
  }
  return scales;
}

}  // namespace

Weights as_stored(const Weights& weights, WeightType type) {
  const ModelConfig& config = weights.config();
  if (weights.stored_type() == WeightType::int8) {
    if (type != WeightType::int8)
      throw Error("weights_int8", "the weights are kept as int8, and another type is asked for");
    return weights;
  }
  if (type == WeightType::f32) return weights;
  std::map<std::string, Tensor> tensors(weights.all().begin(), weights.all().end());
  if (type == WeightType::bf16) {
    for (const WeightSpec& spec : weight_specs(config))
      if (spec.matrix)
        for (float& v : tensors.at(spec.name).data) v = bf16(v);
    return {config, std::move(tensors)};
  }
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const WeightRow& row : all_weights()) {
      if (row.kind != WeightKind::scale || !row.in_model(config)) continue;
      Tensor scale(shape_of(row.dims, config));
      std::vector<Tensor*> matrices;
      for (std::string_view name : row.scaled)
        if (!name.empty()) matrices.push_back(&tensors.at(weight_id(layer, name)));
      scale.data = quantize(matrices, scale.data.size());
      tensors.emplace(weight_id(layer, row.name), std::move(scale));
    }
  return {config, std::move(tensors), WeightType::int8};
}

}  // namespace shardproof::oracle
