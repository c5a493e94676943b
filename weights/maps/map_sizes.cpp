#include "weights/maps/map_sizes.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <optional>

#include "weights/json/strict_json.h"
#include "weights/maps/rope_entries.h"
#include "weights/maps/rope_tables.h"
#include "weights/text/formula.h"

namespace shardproof {
namespace {

using Value = ConfigFormula::Value;

constexpr std::streamsize kMostConfig = 16 << 20;
constexpr std::int64_t kMostLayers = 4096;

class Settings {
 public:
  Settings(const ModelText& text, const ModelConfigFile& config, const TextKeys& given)
      : text_(text), config_(config), given_(given) {}

  void set(const ModelMap::Setting& setting) {
    const std::string& name = setting.name;
    if (const auto own = given_.find(name); own != given_.end()) {
      sizes_.keys.insert(*own);
      if (const auto number = number_in(own->second)) {
        const bool whole = *number == std::floor(*number) && std::abs(*number) < 0x1p53;
        known_[name] = whole ? Value(static_cast<std::int64_t>(*number)) : Value(*number);
      }
    } else if (makes_table(setting.formula.called())) {
      sizes_.tables[name] = {std::string(setting.formula.called()),
                             setting.formula.arguments(names())};
    } else if (text_.flag(name) != nullptr) {
      sizes_.keys[name] = truths(setting);
    } else {
      Value value = setting.formula.value(names());
      if (!value.is_number())
        fail(setting, fmt::format("{} is {}, not a number", name, ConfigFormula::shown(value)));
      if (name == "layers" && (value < 1 || value > kMostLayers))
        fail(setting,
             fmt::format("{} layers, not 1 to {}", ConfigFormula::shown(value), kMostLayers));
      sizes_.keys[name] = value.is_number_integer() ? fmt::format("{}", value.get<std::int64_t>())
                                                    : fmt::format("{}", value.get<double>());
      known_[name] = std::move(value);
    }
  }

  void require(const ModelMap::Requirement& requirement) const {
    const Value value = requirement.formula.value(names());
    if (value == true) return;
    throw Error("model_map_c7",
                fmt::format("the config's model is another: '{}' is {}", requirement.formula.text(),
                            ConfigFormula::shown(value)));
  }

  /// Leaves a line out if its condition is false.
  void choose(const std::optional<ConfigFormula>& condition, int line) {
    if (!condition) return;
    const Value value = condition->value(names());
    if (!value.is_boolean())
      throw Error("model_map_c2", fmt::format("'{}' is {}, neither true nor false",
                                              condition->text(), ConfigFormula::shown(value)));
    if (!value.get<bool>()) sizes_.left_out.insert(line);
  }

  MappedSizes take() { return std::move(sizes_); }

 private:
  [[noreturn]] static void fail(const ModelMap::Setting& setting, const std::string& why) {
    throw Error("model_map_c2", fmt::format("'{}': {}", setting.formula.text(), why));
  }

  ConfigFormula::Names names(std::optional<std::int64_t> layer = std::nullopt) const {
    return [this, layer](const std::string& name) -> std::optional<Value> {
      if (layer && name == "n") return Value(*layer);
      if (const auto at = known_.find(name); at != known_.end()) return at->second;
      return entry(name);
    };
  }

  /// Returns an entry of the config, also where it is one of rope_parameters.
  std::optional<Value> entry(const std::string& name) const {
    const auto own = config_.find(name);
    const std::optional<Value> newer = rope_entry(config_, name);
    if (newer && own != config_.end() && !own->is_null() && *own != *newer)
      throw Error("model_map_c2",
                  fmt::format("the config says {} as {}, and in rope_parameters as {}", name,
                              ConfigFormula::shown(*own), ConfigFormula::shown(*newer)));
    if (newer) return newer;
    if (own != config_.end()) return *own;
    if (name == "rope_scaling") return Value();  // older configs do not have it
    return std::nullopt;
  }

  std::string truths(const ModelMap::Setting& setting) const {
    const auto layers = known_.find("layers");
    if (layers == known_.end() || !layers->second.is_number_integer() || layers->second < 1 ||
        layers->second > kMostLayers)
      fail(setting, "a flag has a value for each layer, and the map sets layers before it");
    std::string digits;
    for (std::int64_t n = 0; n < layers->second.get<std::int64_t>(); ++n) {
      const Value value = setting.formula.value(names(n));
      if (!value.is_boolean())
        fail(setting, fmt::format("of layer {} it is {}, neither true nor false", n,
                                  ConfigFormula::shown(value)));
      digits += value.get<bool>() ? '1' : '0';
    }
    return digits;
  }

  const ModelText& text_;
  const ModelConfigFile& config_;
  const TextKeys& given_;
  MappedSizes sizes_;
  std::map<std::string, Value, std::less<>> known_;
};

}  // namespace

ModelConfigFile load_config(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path file =
      std::filesystem::is_directory(path, error) ? path / "config.json" : path;
  const auto fail = [&](const std::string& why) {
    throw Error("model_map_f3", fmt::format("{}: {}", file.string(), why));
  };
  if (!std::filesystem::is_regular_file(file, error)) fail("no regular file");
  std::ifstream in(file, std::ios::binary);
  std::string text(static_cast<std::size_t>(kMostConfig) + 1, '\0');
  in.read(text.data(), kMostConfig + 1);
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (in.bad() || !in.is_open()) fail("cannot be read");
  if (text.size() > static_cast<std::size_t>(kMostConfig))
    fail(fmt::format("it has more than {} bytes", kMostConfig));
  return parse_config(text, file.string());
}

ModelConfigFile parse_config(std::string_view text, const std::string& file) {
  const auto fail = [&](const std::string& why) {
    throw Error("model_map_f3", fmt::format("{}: {}", file, why));
  };
  ModelConfigFile config =
      parse_strict_json(text, [&](const std::string& why) { fail(fmt::format("it {}", why)); });
  if (!config.is_object()) fail("it is no JSON object");
  return config;
}

ModelConfigFile example_config(const ModelMap& map) {
  ModelConfigFile config = ModelConfigFile::object();
  for (const auto& [name, formula] : map.example)
    config[name] = formula.value([](const std::string&) { return std::nullopt; });
  return config;
}

MappedSizes mapped_sizes(const ModelMap& map, const ModelText& text, const ModelConfigFile& config,
                         const TextKeys& given) {
  require_names(map, text);
  Settings settings(text, config, given);
  const auto at_line = [&](int line, const auto& act, const std::string& remedy = "") {
    try {
      act();
    } catch (const Error& error) {
      throw Error(error.label(), map.where(line) + error.message() + remedy);
    }
  };
  for (const ModelMap::Requirement& requirement : map.requirements)
    at_line(requirement.line, [&] { settings.require(requirement); });
  for (const ModelMap::Setting& setting : map.settings) {
    // What takes the place of an entry that is missing is a use's key.
    const std::string remedy =
        text.flag(setting.name) == nullptr && !makes_table(setting.formula.called())
            ? fmt::format("; or give {}=VALUE", setting.name)
            : "";
    at_line(
        setting.line, [&] { settings.set(setting); }, remedy);
  }
  for (const ModelMap::Source& source : map.sources)
    at_line(source.line, [&] { settings.choose(source.condition, source.line); });
  for (const ModelMap::Module& module : map.modules)
    at_line(module.line, [&] { settings.choose(module.condition, module.line); });
  for (const ModelMap::Ignored& ignored : map.ignored)
    at_line(ignored.line, [&] { settings.choose(ignored.condition, ignored.line); });
  MappedSizes sizes = settings.take();
  for (const auto& [key, value] : given) sizes.keys[key] = value;
  return sizes;
}

std::vector<std::string> unread_entries(const ModelMap& map, const ModelConfigFile& config) {
  std::set<std::string, std::less<>> named;
  const auto add = [&](const auto& lines) {
    for (const auto& line : lines)
      if (line.condition) line.condition->add_names(named);
  };
  for (const ModelMap::Setting& setting : map.settings) setting.formula.add_names(named);
  for (const ModelMap::Requirement& required : map.requirements) required.formula.add_names(named);
  add(map.sources), add(map.modules), add(map.ignored);
  if (named.contains("rope_theta")) named.insert("rope_parameters");
  std::vector<std::string> unread;
  for (const auto& [name, value] : config.items())
    if (!named.contains(name)) unread.push_back(name);
  return unread;
}

}  // namespace shardproof
