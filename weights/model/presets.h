#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace shardproof {

/// A built-in model (docs/spec.md section 6.3): its sizes, and the model keys that differ from
/// their defaults.
struct Preset {
  std::string_view name;
  std::int64_t layers, E, F, H, K, Q, V;
  std::string_view divides;  ///< a torus that divides its dims under every strategy: "4x2x3"
  std::string_view keys;     ///< "block=serial,eps=1e-5"; empty if all are the defaults
  bool published = false;    ///< a full-size published model: for the cost model, not run here
};

/// Returns the presets in the order help prints them.
std::span<const Preset> all_presets();
/// Returns the preset of this name, or null.
const Preset* find_preset(std::string_view name);

/// A published model whose formulas the model keys cannot express, and why.
struct OtherModel {
  std::string_view name;
  std::string_view why;
  std::string_view nearest;  ///< the nearest preset
};
/// Returns the known but unsupported model of this name, or null.
const OtherModel* find_other_model(std::string_view name);

}  // namespace shardproof
