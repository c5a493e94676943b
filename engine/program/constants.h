#pragma once

#include <string>

#include "engine/program/program.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"

namespace shardproof {

/// The model's value of the constant that a scale_by or divide_by names. Throws
/// Error("scale_by_c2", ...) or Error("divide_by_c2", ...) if the op takes none of that name.
double constant_of(const Op& op, const ModelConfig& config);

/// Returns true if the op takes a constant of that name.
bool is_constant(OpKind kind, const std::string& name);
/// The message "'pi' is not a constant; legal: embed_scale, logit_scale".
std::string no_constant(OpKind kind, const std::string& name);

}  // namespace shardproof
