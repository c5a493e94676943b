#pragma once

#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// f32 weights as int8 (docs/spec.md section 2.4), made by the quantizer of engine/ops/quantize.h
/// on one chip: codes in place of the matrices that have scales, and the scales. No code is -0, so
/// that a file gives back the same bits. Throws Error("weights_int8", ...) on weights that are kept
/// as int8 already.
Weights int8_weights(const Weights& weights);

}  // namespace shardproof
