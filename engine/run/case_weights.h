#pragma once

#include "engine/run/case.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// The weights of a case without a weights file: generated from its seed and, for a base-2 model,
/// folded. With weights=int8 they are quantized first and folded into the scales, so that the codes
/// are the plain model's; with weights=bf16 folded weights are rounded, as all others, when they
/// are stored for the run (docs/spec.md section 2.9). Throws what generate_weights and fold throw.
Weights generated_weights(const Case& c);

}  // namespace shardproof
