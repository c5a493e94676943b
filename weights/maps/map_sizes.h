#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weights/base/error.h"
#include "weights/maps/model_map.h"
#include "weights/text/sizes.h"

namespace shardproof {

/// The entries of a config.json.
using ModelConfigFile = nlohmann::json;

/// Reads a config.json, or that of a directory. Throws Error("model_map_f3", ...): it cannot be
/// read, or is no JSON object of at most 16 MiB.
ModelConfigFile load_config(const std::filesystem::path& path);
/// Reads the text of a config.json; `file` names it. Throws Error("model_map_f3", ...).
ModelConfigFile parse_config(std::string_view text, const std::string& file);
/// Returns the entries of a map's own example, its lines `case`. Throws what ConfigFormula throws.
ModelConfigFile example_config(const ModelMap& map);

/// A table that a map makes by a formula: "rope_cos", and the values of its arguments.
struct MapTable {
  std::string function;
  std::vector<ConfigFormula::Value> arguments;
};

/// Sizes and tables that a map gives for one config.json.
struct MappedSizes {
  TextKeys keys;  ///< layers, extents, numbers and flags of the text, as a use gives them
  std::map<std::string, MapTable, std::less<>> tables;  ///< by weight
  std::set<int> left_out;                               ///< lines whose condition is false
};

/// Returns the settings of a map for a config. A formula reads what is set before it, then the
/// config's entries; `given` takes the place of settings. Throws Error, each with file, line and
/// value: what require_names and ConfigFormula throw, "model_map_c2" (a setting that is no number,
/// a flag that is neither true nor false, rope_theta said in two ways), "model_map_c7" (the config
/// is not what the map requires).
MappedSizes mapped_sizes(const ModelMap& map, const ModelText& text, const ModelConfigFile& config,
                         const TextKeys& given = {});

/// Returns the entries of a config that no formula of the map names, sorted.
std::vector<std::string> unread_entries(const ModelMap& map, const ModelConfigFile& config);

}  // namespace shardproof
