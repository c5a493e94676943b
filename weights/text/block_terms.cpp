#include "weights/text/block_terms.h"

#include <algorithm>
#include <utility>

#include "weights/model/registry.h"

namespace shardproof {

bool is_block_term(std::string_view name, const ModelConfig& config) {
  return config.rows == nullptr && config.block == Block::parallel &&
         std::find(std::begin(kBlockTerms), std::end(kBlockTerms), name) != std::end(kBlockTerms);
}

NamedComposites block_terms_of(const ModelConfig& config, NumberFormat weights) {
  // They are values of the serial block.
  ModelConfig serial = config;
  serial.block = Block::serial;
  NamedComposites terms;
  if (config.rows == nullptr && config.block == Block::parallel)
    for (auto& [name, composite] : composites_of(serial, NumberFormat::f32))
      if (is_block_term(name, config)) {
        if (weights == NumberFormat::int8)
          composite.scale = scale_of(config, composite.weights[0])->name;
        terms.emplace_back(name, std::move(composite));
      }
  return terms;
}

}  // namespace shardproof
