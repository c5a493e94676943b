#pragma once

#include <vector>

#include "weights/model/registry.h"

namespace shardproof {

/// Returns the rows of the scales that weights=int8 adds to a model, of keys or a text. The dims of
/// a scale are the output channels of its matrices; of these WeightRow::contracted counts the other
/// dims, which lead in models of keys.
std::vector<const WeightRow*> scale_rows(const ModelConfig& config);

}  // namespace shardproof
