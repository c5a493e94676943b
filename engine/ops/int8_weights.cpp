#include "engine/ops/int8_weights.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/quantize.h"
#include "weights/model/registry.h"
#include "weights/model/scale_rows.h"
#include "weights/text/text_model.h"

namespace shardproof {

Weights int8_weights(const Weights& weights) {
  if (weights.stored_type() == NumberFormat::int8)
    throw Error("weights_int8", "the weights are kept as int8 already; legal: f32 weights");
  const ModelConfig config = model_with_weights(weights.config(), NumberFormat::int8);
  const ModelRows* const rows = config.rows.get();
  const Torus one(1, 1, 1);
  std::map<std::string, Tensor> tensors = weights.tensors();
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const WeightRow* const row : scale_rows(config)) {
      // A text may have it in other layers only.
      if (!tensors.contains(weight_id(layer, row->scaled[0], rows))) continue;
      std::map<std::string, Sharded> matrices;
      Sharded most = shard(Tensor(shape_of(row->dims, config)), Layout::parse(row->dims), one);
      for (std::string_view name : row->scaled) {
        if (name.empty()) continue;
        const std::string id = weight_id(layer, name, rows);
        const Layout layout = Layout::parse(weight_row(name, rows)->dims);
        const auto [at, is_new] = matrices.emplace(id, shard(tensors.at(id), layout, one));
        most = greater(most, absmax(at->second, row->dims));
      }
      const Sharded scale = scale_of_absmax(most);
      for (const auto& [id, matrix] : matrices) tensors.at(id) = assemble(codes(matrix, scale));
      tensors.emplace(weight_id(layer, row->name, rows), assemble(scale));
    }
  return {config, std::move(tensors), NumberFormat::int8};
}

}  // namespace shardproof
