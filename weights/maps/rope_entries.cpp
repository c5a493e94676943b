#include "weights/maps/rope_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardproof {
namespace {

using Value = ModelConfigFile;

constexpr std::array<std::string_view, 4> kNames{"rope_theta", "rope_scaling",
                                                 "partial_rotary_factor", "rope_local_base_freq"};

[[noreturn]] void fail(const Value& parameters, std::string_view why) {
  throw Error("model_map_c2",
              fmt::format("rope_parameters is {}: {}", ConfigFormula::shown(parameters), why));
}

std::optional<Value> entry_of(const Value& entries, const char* name) {
  const auto at = entries.find(name);
  return at == entries.end() ? std::nullopt : std::optional<Value>(*at);
}

/// Returns the scaling as older configs have it; null if there is none.
Value scaling_of(Value entries) {
  const Value kind = entries.value("rope_type", Value("default"));
  if (kind == "default") return {};
  for (const char* name : {"rope_theta", "partial_rotary_factor"}) entries.erase(name);
  return entries;
}

/// Returns the parameters of a type of layers; null if there is one for all.
const Value* of_layers(const Value& parameters, const char* type) {
  const auto at = parameters.find(type);
  return at != parameters.end() && at->is_object() ? &*at : nullptr;
}

}  // namespace

std::optional<ModelConfigFile> rope_entry(const ModelConfigFile& config, std::string_view name) {
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) return std::nullopt;
  const auto at = config.find("rope_parameters");
  if (at == config.end() || at->is_null()) return std::nullopt;
  const Value& parameters = *at;
  if (!parameters.is_object()) fail(parameters, "it has no entries");
  const bool by_layers = std::any_of(parameters.begin(), parameters.end(),
                                     [](const Value& one) { return one.is_object(); });
  const Value* const all = by_layers ? of_layers(parameters, "full_attention") : &parameters;
  if (all == nullptr) fail(parameters, "it has none of full_attention");
  if (name == "rope_local_base_freq") {
    const Value* const local = of_layers(parameters, "sliding_attention");
    if (local == nullptr) return std::nullopt;
    if (!scaling_of(*local).is_null())
      fail(parameters, "those of sliding_attention may not be scaled");
    return entry_of(*local, "rope_theta");
  }
  if (name == "rope_scaling") return scaling_of(*all);
  return entry_of(*all, name == "rope_theta" ? "rope_theta" : "partial_rotary_factor");
}

}  // namespace shardproof
