#pragma once

#include <string_view>

#include "weights/base/error.h"
#include "weights/maps/map_sizes.h"
#include "weights/text/text_model.h"

namespace shardproof {

/// Returns whether the model of a case line is a file of a text: "my.model", "my.model,E=64".
bool is_text_file(std::string_view model);
/// Reads "FILE.model[,KEY=VALUE...]"; `text`, if given, is what the file is taken to hold. With the
/// keys map=FILE.map and config=FILE the sizes are those that the map reads from a config.json, and
/// the model's line has them as keys; without config= they are those of the map's example. Throws
/// Error: "model_key" (a key without a value, or given twice, config without map), and what
/// load_model_text, load_model_map, mapped_sizes, flat_text and sizes_of throw.
ModelConfig load_model(std::string_view line, const ModelText* text = nullptr);

/// A model of a text whose sizes a map gives.
struct MappedModel {
  ModelConfig model;
  MappedSizes sizes;
};
/// Reads "FILE.model[,KEY=VALUE...]" with the sizes that the map reads from a config; the line's
/// keys take the place of the map's. Throws as load_model does.
MappedModel load_mapped_model(std::string_view line, const ModelMap& map,
                              const ModelConfigFile& config, const ModelText* text = nullptr);

/// Reads the model of a case line: parse_model(), or load_model() of a text's file.
ModelConfig read_model(std::string_view model, const ModelText* text = nullptr);

}  // namespace shardproof
