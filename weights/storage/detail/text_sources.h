#pragma once

#include <map>
#include <string>

#include "weights/base/error.h"
#include "weights/storage/detail/weight_source.h"
#include "weights/text/sizes.h"

namespace shardproof {

/// Returns how the weights of a text are generated, by id. Throws what text_weight_specs throws.
std::map<std::string, WeightSource> text_weight_sources(const ModelText& text,
                                                        const TextSizes& sizes);

}  // namespace shardproof
