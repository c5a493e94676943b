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

/// A weight of a text as files hold it: tables of RoPE have a column for each rotated pair.
struct TextWeightSpec {
  std::string id;  ///< "layer0.wq", "embed"
  std::string letters;
  Shape shape;
  TextWeightKind kind = TextWeightKind::matrix;  ///< what it is, or is taken for by its use
  std::int64_t fan_in = 1;  ///< of a matrix: the extents that its contraction sums over
};

/// Returns the weights of a text in its order, those of layers layer by layer.
std::vector<TextWeightSpec> text_weight_specs(const ModelText& text, const TextSizes& sizes);

/// Generates the weights of a text from a seed, by id (docs/spec-model-text.md, "Weights"). Of the
/// text of a model that keys describe they are those of generate_weights.
std::map<std::string, Tensor, std::less<>> generate_text_weights(const ModelText& text,
                                                                 const TextSizes& sizes,
                                                                 std::uint64_t seed);

}  // namespace shardproof
