#pragma once

#include <string>

#include "weights/base/error.h"

namespace shardproof::tools {

/// The arguments of `list map`.
struct MapListing {
  std::string map;     ///< FILE.map
  std::string model;   ///< FILE.model[,KEY=VALUE...]
  std::string config;  ///< a config.json or its directory; "": the map's example
  bool json = false;
};

/// Prints what a map gives a text for a config: its sizes as a model line, the tensors of its
/// weights and the modules that show its values. Returns the exit code. Throws what load_model_map
/// and load_mapped_model throw.
int print_map_listing(const MapListing& asked);

}  // namespace shardproof::tools
