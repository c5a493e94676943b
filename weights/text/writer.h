#pragma once

#include <string>

#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// Returns the text of a model that is written as keys: its layer in the language of texts, with
/// the names of docs/spec-model.md and the keys' sizes as `small` ones. weights=int8 adds the
/// scales of its matrices. parse_model_text takes it.
std::string text_of_model(const ModelConfig& config, WeightType weights = WeightType::f32);

}  // namespace shardproof
