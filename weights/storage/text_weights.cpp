#include "weights/storage/text_weights.h"

#include <utility>

#include "weights/storage/detail/text_sources.h"
#include "weights/storage/detail/weight_source.h"
#include "weights/text/text_weights.h"

namespace shardproof {

std::map<std::string, WeightSource> text_weight_sources(const ModelText& text,
                                                        const TextSizes& sizes) {
  std::map<std::string, WeightSource> sources;
  std::map<std::string, const TextWeight*> declared;
  for (const TextSection section : kTextSections)
    for (const TextWeight& weight : text.section(section).weights)
      declared.emplace(weight.from.empty() ? weight.name : weight.from, &weight);
  for (const TextWeightSpec& spec : text_weight_specs(text, sizes)) {
    WeightSource source{.id = spec.id, .letters = spec.letters, .shape = spec.shape};
    source.kind = spec.kind;
    source.fan_in = spec.fan_in;
    source.either_sign = spec.id.find('.') == std::string::npos;  // of no layer
    if (is_rope_table(spec.kind)) {
      const auto& words = declared.at(spec.id)->parameters;
      source.rotated = sizes.number(words[1]);
      source.theta = sizes.number(words[2]);
    }
    sources.emplace(spec.id, std::move(source));
  }
  return sources;
}

std::map<std::string, Tensor, std::less<>> generate_text_weights(const ModelText& text,
                                                                 const TextSizes& sizes,
                                                                 std::uint64_t seed) {
  std::map<std::string, Tensor, std::less<>> weights;
  for (const auto& [id, source] : text_weight_sources(text, sizes))
    weights.emplace(id, generate_weight(source, seed));
  return weights;
}

}  // namespace shardproof
