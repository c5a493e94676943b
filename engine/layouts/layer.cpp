#include "engine/layouts/layer.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "weights/model/registry.h"
#include "weights/text/composites.h"

namespace shardproof {
namespace {

/// Returns the contraction of a product: "BLHQ,HQE->BLE + BLF,FE->BLE".
EinsumSpec spec_of(const std::string& result, const Composite& product) {
  std::string spec;
  for (std::size_t t = 0; t < product.operands.size(); ++t)
    spec += fmt::format("{}{},{}->{}", t == 0 ? "" : " + ", value_row(product.operands[t])->dims,
                        weight_row(product.weights[t])->dims, value_row(result)->dims);
  return EinsumSpec::parse(spec);
}

std::vector<LogicalOp> ops_of(const ModelConfig& config, WeightType weights) {
  using Kind = LogicalOp::Kind;
  const NamedComposites named = composites_of(config, weights);
  const std::map<std::string, Composite> all(named.begin(), named.end());
  // Attention rotates and caches the values that it is given.
  const auto given = [&](std::string name) {
    while (all.at(name).kind == CompositeKind::rotation ||
           all.at(name).kind == CompositeKind::cache)
      name = all.at(name).operands[0];
    return name;
  };
  std::vector<LogicalOp> ops;
  for (const auto& [name, of] : named) {
    if (!value_row(name)->per_layer) continue;
    switch (of.kind) {
      case CompositeKind::norm:
        ops.push_back({Kind::norm, name, of.operands});
        break;
      case CompositeKind::product: {
        LogicalOp op{Kind::einsum, name, {}, spec_of(name, of), of.scale, of.biases};
        for (std::size_t t = 0; t < of.operands.size(); ++t)
          op.operands.insert(op.operands.end(), {of.operands[t], of.weights[t]});
        ops.push_back(std::move(op));
        break;
      }
      case CompositeKind::mean: {
        const Composite& scores = all.at(all.at(of.operands[0]).operands[0]);
        ops.push_back(
            {Kind::attend,
             name,
             {given(scores.operands[0]), given(scores.operands[1]), given(of.operands[2])}});
        break;
      }
      case CompositeKind::activation:
        ops.push_back({Kind::activate, name, of.operands});
        break;
      case CompositeKind::addition:
        ops.push_back({Kind::add, name, of.operands});
        break;
      default:
        break;  // parts of attention
    }
  }
  return ops;
}

}  // namespace

std::vector<LogicalOp> logical_layer(const ModelConfig& config, WeightType weights) {
  // A search partitions one model thousands of times.
  struct Known {
    ModelConfig config;
    WeightType weights;
    std::vector<LogicalOp> ops;
  };
  thread_local std::optional<Known> last;
  if (!last || !(last->config == config) || last->weights != weights)
    last = Known{config, weights, ops_of(config, weights)};
  return last->ops;
}

}  // namespace shardproof
