#pragma once

#include <string>
#include <string_view>

#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// Returns the text of a model that is written as keys: its layer in the language of texts, with
/// the names of docs/spec-model.md and the keys' sizes as `small` ones. weights=int8 adds the
/// scales of its matrices. parse_model_text takes it. With `rounding`, as a declaration has it
/// (weights/model/rounding_places.h), the text stores too where an engine does that rounds there;
/// a formula that it does not name rounds as docs/spec.md says. Throws what require_places throws.
std::string text_of_model(const ModelConfig& config, NumberFormat weights = NumberFormat::f32,
                          std::string_view rounding = "spec");

}  // namespace shardproof
