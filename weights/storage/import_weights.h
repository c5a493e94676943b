#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/maps/load_model.h"
#include "weights/safetensors/tensor_files.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Another program's checkpoint, and the text and map by which it is read.
struct CheckpointSource {
  std::string model;                 ///< "FILE.model[,KEY=VALUE...]"
  std::string map;                   ///< a file
  std::filesystem::path checkpoint;  ///< a safetensors file, or a directory of them
  std::filesystem::path config;      ///< a config.json or its directory; "": the checkpoint's
};

struct ImportedWeights {
  Weights weights;
  std::size_t tensors = 0;          ///< of the checkpoint
  std::vector<std::string> unread;  ///< those that no weight has
};

/// Reads a model's weights from a checkpoint. Throws Error("case_model", ...) if the model is not a
/// text's, and what load_model_map, load_config, load_mapped_model, TensorFiles::open,
/// mapped_weights, validate and require_memory throw.
ImportedWeights import_weights(const CheckpointSource& source);

/// Reads the weights of a model whose sizes are known already. Throws what import_weights does.
ImportedWeights read_weights(const ModelMap& map, const MappedModel& mapped,
                             const TensorSource& checkpoint);

}  // namespace shardproof
