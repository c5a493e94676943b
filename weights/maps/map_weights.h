#pragma once

#include <map>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/maps/map_sizes.h"
#include "weights/safetensors/tensor_files.h"
#include "weights/text/text_model.h"

namespace shardproof {

/// The weights of a text's model as a checkpoint has them.
struct MappedWeights {
  std::map<std::string, Tensor> tensors;  ///< by id: "layer0.wq"
  std::vector<std::string> unread;        ///< tensors of the checkpoint that no weight has
};

/// Reads the weights of a model from a checkpoint, and makes the map's tables. Throws Error, each
/// naming weight and line: "model_map_c4" (no tensor of the map for a weight is there, or the map
/// has none), "model_map_c5" (a tensor of another shape), "model_map_c6" (a table that cannot be
/// made), and what the source throws.
MappedWeights mapped_weights(const ModelMap& map, const TextModel& model, const MappedSizes& sizes,
                             const TensorSource& checkpoint);

}  // namespace shardproof
