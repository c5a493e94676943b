#pragma once

#include <string>

#include "weights/base/error.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// Reads a file of a model. Throws Error: "model_f1" (it cannot be read), "model_f2" (not text, or
/// beyond 1 MiB), and what parse_model_text throws.
ModelText load_model_text(const std::string& path);

}  // namespace shardproof
