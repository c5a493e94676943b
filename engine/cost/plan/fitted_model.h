#pragma once

#include <cstdint>

#include "engine/layout/torus.h"
#include "engine/strategies/strategy.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

/// The fewest heads, at least the model's, that the blocks of the strategy divide on the torus:
/// heads are padded as the paper pads PaLM's 48 to 64 (section 4). A group of heads that share a
/// key/value head keeps its size.
std::int64_t padded_heads(const Strategy& strategy, const ModelConfig& model, const Torus& torus);

/// Whether so many heads are in whole groups, and the blocks of the strategy divide them.
bool heads_divide(const Strategy& strategy, const ModelConfig& model, std::int64_t heads,
                  const Torus& torus);

/// The model as chips hold it: with so many heads, key/value heads likewise, and with a vocabulary
/// that all chips divide.
ModelConfig fitted_model(const ModelConfig& model, std::int64_t heads, const Torus& torus);

}  // namespace shardproof::cost
