#pragma once

#include <optional>
#include <string_view>

#include "weights/base/error.h"
#include "weights/maps/map_sizes.h"

namespace shardproof {

/// Returns an entry of older configs that a newer one has in rope_parameters: rope_theta,
/// rope_scaling (null: none) and partial_rotary_factor; where it has one for each type of layers
/// those of full_attention, and rope_local_base_freq of sliding_attention. nullopt if it has none.
/// Throws Error("model_map_c2", ...): parameters that are no entries, of other types of layers, or
/// scaled in sliding_attention.
std::optional<ModelConfigFile> rope_entry(const ModelConfigFile& config, std::string_view name);

}  // namespace shardproof
