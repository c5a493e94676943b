#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "oracle/walk/array.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof::oracle::graph {

/// Returns a weight by its id in files, "layer0.wq"; null if there is none.
using FindWeight = std::function<std::shared_ptr<const Tensor>(const std::string& id)>;

/// Returns the elements of a text's weight, whose id is `id`, in the shape that its lines read:
/// tables of RoPE with a column for each channel. Throws Error: "weights_name" (`stored` is null),
/// "weights_shape" (another number of elements).
std::vector<double> elements_of(const Tensor* stored, const ModelText& text, const TextSizes& sizes,
                                const TextWeight& weight, const std::string& id,
                                const Shape& shape);

/// Returns a text's weight for a walk with numbers `Math`: its own floats where they are in the
/// shape that its lines read. Throws what elements_of throws.
template <class Math>
Lettered<typename Math::Scalar> weight_of(const std::shared_ptr<const Tensor>& stored,
                                          const ModelText& text, const TextSizes& sizes,
                                          const TextWeight& weight, const std::string& id,
                                          const Shape& shape) {
  Lettered<typename Math::Scalar> value{weight.letters, shape, {}};
  if (stored != nullptr && stored->data.size() == count_of(shape)) {
    value.floats = {stored, &stored->data};
    return value;
  }
  for (const double v : elements_of(stored.get(), text, sizes, weight, id, shape))
    value.data.push_back(Math::number(v));
  return value;
}

}  // namespace shardproof::oracle::graph
