#include "engine/ops/int8_weights.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/quantize.h"
#include "weights/model/registry.h"

namespace shardproof {

Weights int8_weights(const Weights& weights) {
  if (weights.stored_type() == WeightType::int8)
    throw Error("weights_int8", "the weights are kept as int8 already; legal: f32 weights");
  const ModelConfig& config = weights.config();
  const Torus one(1, 1, 1);
  std::map<std::string, Tensor> tensors(weights.all().begin(), weights.all().end());
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const WeightRow& row : all_weights()) {
      if (row.kind != WeightKind::scale || !row.in_model(config)) continue;
      std::map<std::string, Sharded> matrices;
      Sharded most = shard(Tensor(shape_of(row.dims, config)), Layout::parse(row.dims), one);
      for (std::string_view name : row.scaled) {
        if (name.empty()) continue;
        const WeightRow& matrix = *weight_row(name);
        const std::string id = weight_id(layer, name);
        const auto [at, is_new] =
            matrices.emplace(id, shard(tensors.at(id), Layout::parse(matrix.dims), one));
        most = greater(most, absmax(at->second, static_cast<std::size_t>(matrix.contracted)));
      }
      const Sharded scale = scale_of_absmax(most);
      for (const auto& [id, matrix] : matrices) tensors.at(id) = assemble(codes(matrix, scale));
      tensors.emplace(weight_id(layer, row.name), assemble(scale));
    }
  return {config, std::move(tensors), WeightType::int8};
}

}  // namespace shardproof
