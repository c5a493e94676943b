#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace shardproof {

/// A built-in model (docs/spec.md section 6.3): its sizes, and the model keys in which it differs
/// from their defaults.
struct Preset {
  std::string_view name;
  std::int64_t layers, E, F, H, K, Q, V;
  std::string_view divides;  ///< a torus that divides its dims under every strategy: "4x2x3"
  std::string_view keys;     ///< "block=serial,eps=1e-5"; empty if all are the defaults
  bool published = false;    ///< a published model in full: for the cost model, not to be run here
};

/// In the order help prints them.
std::span<const Preset> all_presets();
/// Null if there is none of this name.
const Preset* find_preset(std::string_view name);

/// A published model whose formulas no model keys give, and why.
struct OtherModel {
  std::string_view name;
  std::string_view why;
  std::string_view nearest;  ///< the preset that comes nearest
};
/// Null if nothing is known of this name.
const OtherModel* find_other_model(std::string_view name);

}  // namespace shardproof
