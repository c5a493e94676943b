#include "weights/maps/load_model.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "weights/base/detail/words.h"
#include "weights/maps/map_sizes.h"
#include "weights/text/model_file.h"

namespace shardproof {
namespace {

constexpr std::string_view kExtension = ".model";

/// A line "FILE.model,KEY=VALUE", in parts.
struct ModelLine {
  std::string file;
  TextKeys keys;

  explicit ModelLine(std::string_view line) : file(line.substr(0, line.find(','))) {
    if (file.size() == line.size()) return;
    for (const std::string_view item : split(line.substr(file.size() + 1), ",")) {
      const auto equals = item.find('=');
      if (equals == std::string_view::npos || equals == 0)
        throw Error("model_key", fmt::format("{:?} is not key=value", item));
      if (!keys.emplace(item.substr(0, equals), item.substr(equals + 1)).second)
        throw Error("model_key", fmt::format("{} is given twice", item.substr(0, equals)));
    }
  }

  /// Takes a key out; "" if it is not there.
  std::string take(std::string_view name) {
    const auto at = keys.find(name);
    if (at == keys.end()) return "";
    std::string value = at->second;
    keys.erase(at);
    return value;
  }
};

MappedModel mapped_model(const ModelLine& line, const ModelText& text, const ModelMap& map,
                         const ModelConfigFile& config) {
  MappedSizes sizes = mapped_sizes(map, text, config, line.keys);
  std::string own_line = line.file;
  for (const auto& [key, value] : sizes.keys) own_line += fmt::format(",{}={}", key, value);
  return {model_config(std::make_shared<const TextModel>(text, sizes.keys, own_line)),
          std::move(sizes)};
}

}  // namespace

bool is_text_file(std::string_view model) {
  return model.substr(0, model.find(',')).ends_with(kExtension);
}

ModelConfig load_model(std::string_view line, const ModelText* given) {
  ModelLine parts(line);
  const std::string map_file = parts.take("map"), config_file = parts.take("config");
  if (map_file.empty() && !config_file.empty())
    throw Error("model_key",
                fmt::format("config={} is read by a map: give map=FILE.map too", config_file));
  const ModelText text = given != nullptr ? *given : load_model_text(parts.file);
  if (map_file.empty())
    return model_config(std::make_shared<const TextModel>(text, parts.keys, std::string(line)));
  const ModelMap map = load_model_map(map_file);
  return mapped_model(parts, text, map,
                      config_file.empty() ? example_config(map) : load_config(config_file))
      .model;
}

MappedModel load_mapped_model(std::string_view line, const ModelMap& map,
                              const ModelConfigFile& config, const ModelText* text) {
  const ModelLine parts(line);
  return mapped_model(parts, text != nullptr ? *text : load_model_text(parts.file), map, config);
}

ModelConfig read_model(std::string_view model, const ModelText* text) {
  return is_text_file(model) ? load_model(model, text) : parse_model(model);
}

}  // namespace shardproof
