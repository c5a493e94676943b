#pragma once

#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Quantizes f32 weights to int8 (docs/spec.md section 2.4) with the quantizer of
/// engine/ops/quantize.h on one chip: matrices that have scales become codes, and the scales are
/// added. No code is -0, so a file returns the same bits. Throws Error("weights_int8", ...) if the
/// weights are int8 already.
Weights int8_weights(const Weights& weights);

}  // namespace shardproof
