#include "weights/storage/generator.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "weights/base/error.h"
#include "weights/model/registry.h"
#include "weights/storage/detail/philox.h"
#include "weights/storage/detail/text_sources.h"
#include "weights/storage/detail/weight_source.h"
#include "weights/storage/fold.h"
#include "weights/text/text_model.h"
#include "weights/text/text_weights.h"

namespace shardproof {
namespace {

void require_prompt_size(std::int64_t batch, std::int64_t length) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (batch < 1 || length < 1 || batch > kMost || length > kMost)
    throw Error("prompt_size",
                fmt::format("batch={} prompt={}: both must be from 1 to {}", batch, length, kMost));
}

/// Returns how the values of a weight of the registry are generated.
WeightSource source_of(const ModelConfig& config, const WeightSpec& spec) {
  WeightSource source{.id = spec.name, .letters = spec.dims, .shape = spec.shape};
  source.fan_in = spec.fan_in;
  if (spec.matrix) return source;
  const WeightRow& row = *weight_row(std::string_view(spec.name).substr(spec.name.find('.') + 1));
  source.either_sign = !row.per_layer;
  source.rotated = config.rotary * static_cast<double>(config.Q);
  source.theta = config.theta;
  source.kind = row.kind == WeightKind::gain     ? TextWeightKind::gain
                : row.kind == WeightKind::slopes ? TextWeightKind::slopes
                : spec.name == "rope_cos"        ? TextWeightKind::cosines
                : spec.name == "rope_sin"        ? TextWeightKind::sines
                                                 : TextWeightKind::bias;
  return source;
}

}  // namespace

std::array<std::uint32_t, 4> counter_random(std::uint64_t seed, std::string_view stream,
                                            std::uint64_t index) {
  return philox_words(seed, fnv1a(stream), index);
}

std::int64_t ranged(std::uint32_t word, std::int64_t low, std::int64_t high) {
  const auto count = static_cast<std::uint64_t>(high - low + 1);
  return low + static_cast<std::int64_t>((word * count) >> 32);
}

Weights generate_weights(const ModelConfig& config, std::uint64_t seed, std::size_t room) {
  validate(config);
  if (config.rows == nullptr && config.softmax == Softmax::base2) {
    ModelConfig plain = config;
    plain.softmax = Softmax::base_e;
    return fold(generate_weights(plain, seed, room));
  }
  std::map<std::string, WeightSource> sources;
  std::map<std::string, Shape> shapes;
  for (const WeightSpec& spec : weight_specs(config)) {
    shapes.emplace(spec.name, spec.shape);
    if (config.rows == nullptr) sources.emplace(spec.name, source_of(config, spec));
  }
  const TextModel* const of_text = text_model(config);
  if (of_text != nullptr) sources = text_weight_sources(of_text->text(), of_text->sizes());
  const auto read = [sources = std::move(sources), shapes, config, seed](const std::string& name) {
    Tensor tensor = generate_weight(sources.at(name), seed);
    const TextModel* const model = text_model(config);
    const TextWeight* const weight = model != nullptr ? model->weight_of_file(name) : nullptr;
    if (weight == nullptr || !is_rope_table(weight->kind)) return tensor;
    const float rest = weight->kind == TextWeightKind::cosines ? 1.0F : 0.0F;
    return table_of_pairs(*weight, tensor, shapes.at(name), rest);
  };
  return {config, shapes, read, NumberFormat::f32, room};
}

IntTensor generate_prompt(const ModelConfig& config, std::uint64_t seed, std::int64_t batch,
                          std::int64_t length, const SharedPrefix& prefix) {
  require_prompt_size(batch, length);
  IntTensor prompt({batch, length});
  auto out = prompt.data.begin();
  for (std::int64_t row = 0; row < batch; ++row) {
    for (std::int64_t position = 0; position < length; ++position) {
      const bool shared = position < prefix.length;
      const std::int64_t of = shared ? prefix.of_row(row, batch) : row;
      const auto index =
          (static_cast<std::uint64_t>(of) << 32) | static_cast<std::uint64_t>(position);
      const std::uint32_t word = counter_random(seed, shared ? "prefix" : "prompt", index)[0];
      *out++ = static_cast<std::int32_t>(word % static_cast<std::uint64_t>(config.V));
    }
  }
  return prompt;
}

IntTensor generate_ids(const ModelConfig& config, std::uint64_t seed, std::int64_t batch,
                       std::int64_t positions, const SharedPrefix& prefix) {
  require_prompt_size(batch, positions);
  std::vector<std::int32_t> permutation(static_cast<std::size_t>(config.V));
  std::iota(permutation.begin(), permutation.end(), 0);
  for (std::size_t i = permutation.size(); i-- > 1;) {
    const std::uint64_t word = counter_random(seed, "ids", i)[0];
    std::swap(permutation[i], permutation[word % (i + 1)]);
  }
  // If ids must repeat, rows start so far apart that no two of V rows agree at any position.
  std::int64_t apart = positions;
  if (batch > config.V / positions)
    while (std::gcd(apart, config.V) != 1) ++apart;
  IntTensor ids({batch, positions});
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0; t < positions; ++t) {
      const std::int64_t row =
          t < prefix.length ? prefix.first_row(prefix.of_row(b, batch), batch) : b;
      ids.data[static_cast<std::size_t>(b * positions + t)] =
          permutation[static_cast<std::size_t>((row * apart + t) % config.V)];
    }
  return ids;
}

}  // namespace shardproof
