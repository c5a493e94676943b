#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof {

/// Generates the weights of a text from a seed, by id (docs/spec-model-text.md, "Weights"). Of the
/// text of a model that keys describe they are those of generate_weights.
std::map<std::string, Tensor, std::less<>> generate_text_weights(const ModelText& text,
                                                                 const TextSizes& sizes,
                                                                 std::uint64_t seed);

}  // namespace shardproof
