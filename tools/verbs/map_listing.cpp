#include "tools/verbs/map_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/text/json_text.h"
#include "weights/maps/load_model.h"

namespace shardproof::tools {
namespace {

/// One row of the listing: a name of the text, and what stands for it elsewhere.
struct MapRow {
  std::string name, there, how;
};

void print_rows(const char* title, const char* there, const char* how,
                const std::vector<MapRow>& rows) {
  if (rows.empty()) return;
  std::size_t name = std::string(title).size(), value = std::string(how).size();
  for (const MapRow& row : rows) {
    name = std::max(name, row.name.size());
    value = std::max(value, row.how.size());
  }
  fmt::print("\n{:<{}}  {:<{}}  {}\n", title, name, how, value, there);
  for (const MapRow& row : rows)
    fmt::print("{:<{}}  {:<{}}  {}\n", row.name, name, row.how, value, row.there);
}

std::string pattern_text(const TensorPattern& pattern) {
  const bool parts = pattern.text.find('[') != std::string::npos;
  return pattern.text + (parts ? fmt::format(" take {}", pattern.take) : "") +
         (pattern.skip > 0 ? fmt::format(" skip {}", pattern.skip) : "");
}

std::vector<MapRow> setting_rows(const ModelMap& map, const MappedSizes& sizes) {
  std::vector<MapRow> rows;
  for (const ModelMap::Setting& setting : map.settings) {
    const auto key = sizes.keys.find(setting.name);
    rows.push_back(
        {setting.name, setting.formula.text(), key == sizes.keys.end() ? "a table" : key->second});
  }
  return rows;
}

nlohmann::json json_of(const char* name, const char* there, const char* how,
                       const std::vector<MapRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const MapRow& row : rows)
    list.push_back({{name, row.name}, {there, row.there}, {how, row.how}});
  return list;
}

}  // namespace

int print_map_listing(const MapListing& asked) {
  const ModelMap map = load_model_map(asked.map);
  const MappedModel mapped = load_mapped_model(
      asked.model, map, asked.config.empty() ? example_config(map) : load_config(asked.config));
  const std::vector<MapRow> settings = setting_rows(map, mapped.sizes);
  std::vector<MapRow> weights, values;
  const auto has = [&](int line) { return !mapped.sizes.left_out.contains(line); };
  for (const ModelMap::Source& source : map.sources)
    if (has(source.line))
      weights.push_back({source.weight, source.tensor, pattern_text(source.pattern)});
  for (const ModelMap::Module& module : map.modules)
    if (has(module.line))
      values.push_back({module.value, module.module,
                        pattern_text(module.pattern) + (module.input ? " input" : "")});
  const std::string line = print_model(mapped.model);
  if (asked.json) {
    fmt::print("{}\n", json_text({{"map", asked.map},
                                  {"class", map.model_class},
                                  {"model", line},
                                  {"settings", json_of("name", "formula", "value", settings)},
                                  {"weights", json_of("weight", "tensor", "pattern", weights)},
                                  {"values", json_of("value", "module", "pattern", values)}}));
    return 0;
  }
  fmt::print("{}{}\n--model {}\n", asked.map,
             map.model_class.empty() ? "" : ", of " + map.model_class, line);
  print_rows("setting", "formula", "value", settings);
  print_rows("weight", "tensor", "pattern", weights);
  print_rows("value", "module", "pattern", values);
  return 0;
}

}  // namespace shardproof::tools
