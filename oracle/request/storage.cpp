#include "oracle/request/storage.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/numeric/detail/functions.h"
#include "weights/model/registry.h"
#include "weights/model/scale_rows.h"
#include "weights/text/text_model.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

/// A matrix and the number of the output channel of each element.
struct Matrix {
  Tensor* elements;
  std::vector<size_t> channel;
};

/// Numbers the output channels of a matrix with these letters, row-major over `channels`.
Matrix matrix_of(Tensor& elements, std::string_view letters, std::string_view channels) {
  Matrix matrix{&elements, std::vector<size_t>(elements.data.size(), 0)};
  for (size_t at = 0; at < elements.data.size(); ++at)
    for (const char c : channels) {
      const size_t dim = letters.find(c);
      size_t step = 1;
      for (size_t d = dim + 1; d < letters.size(); ++d)
        step *= static_cast<size_t>(elements.shape[d]);
      const auto extent = static_cast<size_t>(elements.shape[dim]);
      matrix.channel[at] = matrix.channel[at] * extent + at / step % extent;
    }
  return matrix;
}

/// Replaces matrices with the same output channels by their codes, and returns the scales: one per
/// channel, over all the matrices.
std::vector<float> quantize(const std::vector<Matrix>& matrices, size_t channels) {
  std::vector<double> absmax(channels, 0.0);
  for (const Matrix& matrix : matrices)
    for (size_t at = 0; at < matrix.channel.size(); ++at) {
      double& most = absmax[matrix.channel[at]];
      most = std::max(most, std::abs(static_cast<double>(matrix.elements->data[at])));
    }
  std::vector<float> scales(channels);
  for (size_t j = 0; j < channels; ++j) {
    scales[j] = static_cast<float>(absmax[j] / 127.0);
    if (scales[j] == 0) scales[j] = 1;
  }
  for (const Matrix& matrix : matrices)
    for (size_t at = 0; at < matrix.channel.size(); ++at) {
      float& v = matrix.elements->data[at];
      const double code =
          std::nearbyint(static_cast<double>(v) / static_cast<double>(scales[matrix.channel[at]]));
      // A code is an integer and has no -0.
      v = code == 0 ? 0.0F : static_cast<float>(std::clamp(code, -127.0, 127.0));
    }
  return scales;
}

}  // namespace

Weights as_stored(const Weights& weights, NumberFormat type) {
  const ModelConfig& config = weights.config();
  if (weights.stored_type() == NumberFormat::int8) {
    if (type != NumberFormat::int8)
      throw Error("weights_int8", "the weights are kept as int8, and another type is asked for");
    return weights;
  }
  if (type == NumberFormat::f32) return weights;
  if (type == NumberFormat::bf16) {
    std::set<std::string> matrices;
    for (const WeightSpec& spec : weight_specs(config))
      if (spec.matrix) matrices.insert(spec.name);
    return weights.changed(config, [matrices](const std::string& name, Tensor& tensor) {
      if (!matrices.contains(name)) return;
      for (float& v : tensor.data) v = bf16(v);
    });
  }
  const ModelConfig coded = model_with_weights(config, type);
  const auto of_layer = [rows = coded.rows](std::int64_t layer, std::string_view name) {
    return weight_id(layer, name, rows.get());
  };
  // Returns the codes of a scale's matrices in a layer, and the scale; nothing where it has none.
  const auto quantized = [weights, coded, of_layer](std::int64_t layer, const WeightRow& row) {
    std::map<std::string, Tensor> tensors;
    for (std::string_view name : row.scaled)  // some are in layers with a flag alone
      if (const std::string id = of_layer(layer, name); !name.empty() && weights.contains(id))
        tensors.emplace(id, *weights.at(id));
    if (tensors.empty()) return tensors;
    std::vector<Matrix> matrices;
    for (std::string_view name : row.scaled)
      if (const auto at = tensors.find(of_layer(layer, name)); at != tensors.end())
        matrices.push_back(
            matrix_of(at->second, weight_row(name, coded.rows.get())->dims, row.dims));
    Tensor scale(shape_of(row.dims, coded));
    scale.data = quantize(matrices, scale.data.size());
    tensors.emplace(of_layer(layer, row.name), std::move(scale));
    return tensors;
  };
  std::map<std::string, std::pair<std::int64_t, const WeightRow*>> scaled;  // by id of a result
  std::map<std::string, Shape> shapes;
  std::map<std::string, Tensor> tensors;
  if (!weights.on_demand()) tensors = weights.tensors();
  for (const std::string& name : weights.names()) shapes.emplace(name, weights.shape(name));
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const WeightRow* const row : scale_rows(coded)) {
      if (!weights.on_demand()) {
        for (auto& [id, tensor] : quantized(layer, *row))
          tensors.insert_or_assign(id, std::move(tensor));
        continue;
      }
      bool any = false;
      for (std::string_view name : row->scaled)
        if (const std::string id = of_layer(layer, name); !name.empty() && weights.contains(id))
          any = true, scaled.emplace(id, std::pair(layer, row));
      if (!any) continue;
      scaled.emplace(of_layer(layer, row->name), std::pair(layer, row));
      shapes.emplace(of_layer(layer, row->name), shape_of(row->dims, coded));
    }
  if (!weights.on_demand()) return {coded, std::move(tensors), NumberFormat::int8};
  const auto read = [weights, quantized, scaled](const std::string& name) {
    const auto at = scaled.find(name);
    return at == scaled.end() ? *weights.at(name)
                              : quantized(at->second.first, *at->second.second).at(name);
  };
  return {coded, std::move(shapes), read, NumberFormat::int8, weights.room()};
}

}  // namespace shardproof::oracle
