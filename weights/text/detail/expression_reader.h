#pragma once

#include <string_view>

#include "weights/base/error.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// Reads an expression. Throws Error: "model_c0" (not one, or too deep), "model_c1" (an unknown op,
/// with the nearest), "model_c5" (operands or parameters of another number or form than the op's).
Expression read_expression(std::string_view text);

}  // namespace shardproof
