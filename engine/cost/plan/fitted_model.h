#pragma once

#include <cstdint>
#include <map>

#include "engine/layout/torus.h"
#include "engine/strategies/strategy.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

/// Returns the fewest heads, at least the model's, that the strategy's blocks divide on the torus;
/// the paper pads PaLM's 48 heads to 64 likewise (section 4). A group of heads that share a
/// key/value head keeps its size.
std::int64_t padded_heads(const Strategy& strategy, const ModelConfig& model, const Torus& torus);

/// Returns true if `heads` is a whole number of groups and the strategy's blocks divide it.
bool heads_divide(const Strategy& strategy, const ModelConfig& model, std::int64_t heads,
                  const Torus& torus);

/// Returns the model as placed on chips: with `heads` heads, the key/value heads padded likewise,
/// and with a vocabulary that the number of chips divides; a text's own where its formulas allow no
/// others.
ModelConfig fitted_model(const ModelConfig& model, std::int64_t heads, const Torus& torus);

/// Returns a text's model with other extents of letters that it declares without a formula, and
/// what follows from them by formulas; its line has the keys that its file's small sizes are not.
/// Throws what sizes_of throws.
ModelConfig with_extents(const ModelConfig& model, const std::map<char, std::int64_t>& extents);

}  // namespace shardproof::cost
