#pragma once

#include <cstdint>
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

/// Returns the weights of a text in its order, those of layers layer by layer. Throws
/// Error("model_value", ...) if 64 bits cannot count their bytes.
std::vector<TextWeightSpec> text_weight_specs(const ModelText& text, const TextSizes& sizes);

/// Returns whether a weight is a table of RoPE, which files hold with a column for each pair of
/// rotated channels, and lines read with one for each channel.
bool is_rope_table(TextWeightKind kind);
/// Returns the shape of a table of RoPE with a column for each pair of rotated channels.
Shape shape_of_pairs(const TextWeight& weight, const TextSizes& sizes);
/// Returns the table of a shape [P, Q] with a column for each channel, for one with a column for
/// each pair; channels that do not rotate have `rest`.
template <class T>
Array<T> table_of_pairs(const TextWeight& weight, const Array<T>& pairs, const Shape& shape,
                        const T& rest) {
  Array<T> table(shape, rest);
  const std::int64_t J = pairs.shape[1], Q = shape[1];
  const bool half = weight.parameters[0] == "half";
  for (std::int64_t i = 0; i < element_count(pairs.shape); ++i) {
    const std::int64_t row = i / J * Q, j = i % J;
    for (const std::int64_t q : {half ? j : 2 * j, half ? j + J : 2 * j + 1})
      table.data[static_cast<std::size_t>(row + q)] = pairs.data[static_cast<std::size_t>(i)];
  }
  return table;
}

}  // namespace shardproof
