#include "oracle/walk/weights.h"

#include <fmt/format.h>

#include "oracle/walk/passes.h"

namespace shardproof::oracle::graph {

std::vector<double> elements_of(const Tensor* stored, const ModelText& text, const TextSizes& sizes,
                                const TextWeight& weight, const std::string& id,
                                const Shape& shape) {
  if (stored == nullptr)
    throw Error("weights_name", fmt::format("{} has no weight {:?}", text.name, id));
  const Tensor& t = *stored;
  if (turns(weight) && t.shape.size() == 2 && t.shape[0] == shape[0] &&
      2 * t.shape[1] == static_cast<std::int64_t>(sizes.number(weight.parameters[1])))
    return spread(weight, t, shape, 1.0, 0.0);
  if (t.data.size() != count_of(shape))
    throw Error("weights_shape", fmt::format("{} has {} elements, not the {} of the text", id,
                                             t.data.size(), count_of(shape)));
  return std::vector<double>(t.data.begin(), t.data.end());
}

}  // namespace shardproof::oracle::graph
