#pragma once

#include "engine/run/case.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// The weights of a case that no file gives: of its seed, and of a base-2 model folded. There
/// weights=int8 quantizes first and folds into the scales, so that the codes are the plain model's;
/// weights=bf16 rounds what is folded, as it rounds all others, when they are stored for the run
/// (docs/spec.md section 2.9). Throws what generate_weights and fold throw.
Weights generated_weights(const Case& c);

}  // namespace shardproof
