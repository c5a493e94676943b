#pragma once

#include <map>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/text/model_text.h"
#include "weights/text/sizes.h"

namespace shardproof::oracle::graph {

/// Weights by their ids in files, "layer0.wq".
using WeightsById = std::map<std::string, Tensor, std::less<>>;

/// Returns the elements of a text's weight, whose id is `id`, in the shape that its lines read:
/// tables of RoPE with a column for each channel. Throws Error: "weights_name" (none of this id),
/// "weights_shape" (another number of elements).
std::vector<double> elements_of(const WeightsById& weights, const ModelText& text,
                                const TextSizes& sizes, const TextWeight& weight,
                                const std::string& id, const Shape& shape);

}  // namespace shardproof::oracle::graph
