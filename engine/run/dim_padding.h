#pragma once

#include <algorithm>
#include <string>

#include "engine/run/case.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/model/registry.h"

namespace shardproof {

// Dims that are longer on chips than in the model, so that a torus divides them (docs/spec.md
// section 6.7). Values mean what the given model says; the placed model's extents cut the blocks.

/// The model as chips hold it: H and V padded as the case says, K with H so that a group of query
/// heads keeps its size. Without padding, the model itself.
ModelConfig placed_model(const Case& c);

/// "pad_heads=24 pad_vocab=264", only the keys that are given; empty without padding.
std::string padding_text(const Case& c);

/// Throws Error("case_pad", ...) naming the nearest legal value: pad_heads or pad_vocab below the
/// model's own dim, heads that do not form whole groups, or a model too large to count.
void require_padding(const Case& c);

/// Pads a tensor at the end of each dim to `shape` with the value `rest`.
template <class T>
Array<T> padded(const Array<T>& tensor, const Shape& shape, const T& rest) {
  if (tensor.shape == shape) return tensor;
  Array<T> longer(shape, rest);
  const std::int64_t run = tensor.shape.empty() ? 1 : tensor.shape.back();
  Shape index(shape.size(), 0);
  for (std::int64_t from = 0; from < element_count(tensor.shape); from += run) {
    std::int64_t to = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) to = to * shape[d] + index[d];
    std::copy_n(tensor.data.begin() + from, run, longer.data.begin() + to);
    for (std::size_t d = shape.size(); d-- > 1 && ++index[d - 1] == tensor.shape[d - 1];)
      index[d - 1] = 0;
  }
  return longer;
}

/// The padding value of a weight: 0, so that a padded head adds nothing to a sum over heads; for
/// scales 1, the scale of a channel of zeros.
inline float padding_of(WeightKind kind) { return kind == WeightKind::scale ? 1.0F : 0.0F; }

}  // namespace shardproof
