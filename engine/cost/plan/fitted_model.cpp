#include "engine/cost/plan/fitted_model.h"

#include <numeric>

namespace shardproof::cost {
namespace {

std::int64_t next_multiple(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Heads that share one key/value head; a multiquery model has one group, of any size.
std::int64_t group_of_heads(const ModelConfig& model) {
  return model.K == 1 ? 1 : model.H / model.K;
}

std::int64_t blocks_of_heads(const Strategy& strategy, const Torus& torus) {
  std::int64_t unit = 1;
  for (const ShardedDim& one : sharded_dims(strategy))
    if (one.dim == 'H') unit = std::lcm(unit, std::int64_t{torus.size(one.axes)});
  return unit;
}

}  // namespace

std::int64_t padded_heads(const Strategy& strategy, const ModelConfig& model, const Torus& torus) {
  return next_multiple(model.H, std::lcm(blocks_of_heads(strategy, torus), group_of_heads(model)));
}

bool heads_divide(const Strategy& strategy, const ModelConfig& model, std::int64_t heads,
                  const Torus& torus) {
  return heads % std::lcm(blocks_of_heads(strategy, torus), group_of_heads(model)) == 0;
}

ModelConfig fitted_model(const ModelConfig& model, std::int64_t heads, const Torus& torus) {
  const std::int64_t K = model.K == 1 ? 1 : heads / group_of_heads(model);
  return with_dims(model, model.E, model.F, heads, K, next_multiple(model.V, torus.chips()));
}

}  // namespace shardproof::cost
