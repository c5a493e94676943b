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
namespace {

/// A scale of a layer, and the matrices that it is of.
struct ScaledGroup {
  std::int64_t layer = 0;
  const WeightRow* scale = nullptr;
};

/// Returns the scale and the codes of its matrices, by id.
std::map<std::string, Tensor> quantized(const Weights& weights, const ModelConfig& config,
                                        const ScaledGroup& group) {
  const ModelRows* const rows = config.rows.get();
  const Torus one(1, 1, 1);
  std::map<std::string, Sharded> matrices;
  Sharded most =
      shard(Tensor(shape_of(group.scale->dims, config)), Layout::parse(group.scale->dims), one);
  for (std::string_view name : group.scale->scaled) {
    if (name.empty()) continue;
    const std::string id = weight_id(group.layer, name, rows);
    const Layout layout = Layout::parse(weight_row(name, rows)->dims);
    const auto [at, is_new] = matrices.emplace(id, shard(*weights.at(id), layout, one));
    most = greater(most, absmax(at->second, group.scale->dims));
  }
  const Sharded scale = scale_of_absmax(most);
  std::map<std::string, Tensor> tensors;
  for (const auto& [id, matrix] : matrices) tensors.emplace(id, assemble(codes(matrix, scale)));
  tensors.emplace(weight_id(group.layer, group.scale->name, rows), assemble(scale));
  return tensors;
}

}  // namespace

Weights int8_weights(const Weights& weights) {
  if (weights.stored_type() == NumberFormat::int8)
    throw Error("weights_int8", "the weights are kept as int8 already; legal: f32 weights");
  const ModelConfig config = model_with_weights(weights.config(), NumberFormat::int8);
  const ModelRows* const rows = config.rows.get();
  std::vector<ScaledGroup> groups;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const WeightRow* const row : scale_rows(config))
      // A text may have it in other layers only.
      if (weights.contains(weight_id(layer, row->scaled[0], rows))) groups.push_back({layer, row});
  if (!weights.on_demand()) {
    std::map<std::string, Tensor> tensors = weights.tensors();
    for (const ScaledGroup& group : groups)
      for (auto& [id, tensor] : quantized(weights, config, group))
        tensors.insert_or_assign(id, std::move(tensor));
    return {config, std::move(tensors), NumberFormat::int8};
  }
  std::map<std::string, Shape> shapes;
  for (const std::string& name : weights.names()) shapes.emplace(name, weights.shape(name));
  std::map<std::string, ScaledGroup> group_of;
  for (const ScaledGroup& group : groups) {
    const std::string scale = weight_id(group.layer, group.scale->name, rows);
    shapes.emplace(scale, shape_of(group.scale->dims, config));
    group_of.emplace(scale, group);
    for (std::string_view name : group.scale->scaled)
      if (!name.empty()) group_of.emplace(weight_id(group.layer, name, rows), group);
  }
  const auto read = [weights, config, group_of = std::move(group_of)](const std::string& name) {
    const auto group = group_of.find(name);
    return group == group_of.end() ? *weights.at(name)
                                   : quantized(weights, config, group->second).at(name);
  };
  return {config, std::move(shapes), read, NumberFormat::int8, weights.room()};
}

}  // namespace shardproof
