#pragma once

#include <cstdint>
#include <string_view>

#include "weights/base/error.h"
#include "weights/base/tensor.h"
#include "weights/maps/config_formula.h"

namespace shardproof {

/// Returns whether a function of a map makes a table: rope_cos, rope_sin, slopes.
bool makes_table(std::string_view function);

/// Returns the table that a function of a map makes, f64 rounded to f32 (docs/spec-model-map.md):
/// rope_cos and rope_sin(theta, channels, width[, style[, scaling[, context]]]) of `positions` rows
/// and `width` columns; slopes(heads[, base[, up]]) of `heads`. Throws Error("model_map_c6", ...),
/// naming function and value: arguments of another number or kind, a scaling that is none of
/// linear, llama3 and yarn.
Tensor make_table(std::string_view function, const std::vector<ConfigFormula::Value>& arguments,
                  std::int64_t positions);

}  // namespace shardproof
