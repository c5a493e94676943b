#include "engine/cost/plan/fitted_model.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "weights/text/heads.h"

namespace shardproof::cost {
namespace {

std::int64_t next_multiple(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t blocks_of_heads(const Strategy& strategy, const Torus& torus) {
  std::int64_t unit = 1;
  for (const ShardedDim& one : sharded_dims(strategy))
    if (one.dim == 'H') unit = std::lcm(unit, std::int64_t{torus.size(one.axes)});
  return unit;
}

}  // namespace

std::int64_t padded_heads(const Strategy& strategy, const ModelConfig& model, const Torus& torus) {
  return next_multiple(model.H, std::lcm(blocks_of_heads(strategy, torus), heads_per_group(model)));
}

bool heads_divide(const Strategy& strategy, const ModelConfig& model, std::int64_t heads,
                  const Torus& torus) {
  return heads % std::lcm(blocks_of_heads(strategy, torus), heads_per_group(model)) == 0;
}

ModelConfig with_extents(const ModelConfig& model, const std::map<char, std::int64_t>& extents) {
  const TextModel& given = *text_model(model);
  const ModelText& text = given.text();
  const TextSizes& sizes = given.sizes();
  TextKeys keys{{"layers", std::to_string(sizes.layers)}};
  for (const TextDim& dim : text.dims) {
    const auto at = extents.find(dim.letter);
    if (!dim.formula)
      keys[std::string(1, dim.letter)] =
          std::to_string(at == extents.end() ? given.extent(dim.letter) : at->second);
  }
  for (const TextNumber& number : text.numbers)
    if (!number.formula) keys[number.name] = fmt::format("{}", sizes.numbers.at(number.name));
  for (const auto& [name, values] : sizes.flags)
    for (const bool value : values) keys[name] += value ? '1' : '0';
  std::string line = given.line().substr(0, given.line().find(','));
  for (const auto& [key, value] : keys)
    if (const auto own = text.small.find(key);
        own == text.small.end() || own->second.value != value)
      line += fmt::format(",{}={}", key, value);
  return model_config(std::make_shared<const TextModel>(text, keys, line));
}

ModelConfig fitted_model(const ModelConfig& model, std::int64_t heads, const Torus& torus) {
  const std::int64_t K = kv_heads(model, heads);
  const std::int64_t V = next_multiple(model.V, torus.chips());
  if (model.rows != nullptr) {
    if (heads == model.H && V == model.V) return model;
    try {
      return with_extents(model, {{'H', heads}, {'K', K}, {'V', V}});
    } catch (const Error&) {  // the text's formulas need its own; what does not divide is left out
      return model;
    }
  }
  return with_dims(model, model.E, model.F, heads, K, V);
}

}  // namespace shardproof::cost
