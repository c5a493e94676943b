#pragma once

#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Returns the weights of the model with softmax=base2, its constants folded in, each factor in f64
/// and cast to f32 once (docs/spec.md section 2.9). With int8 weights the scales take the factors
/// of their matrices. Throws Error: "weights_fold" (the weights are already base-2), "model_value"
/// (a constant of the model cannot be folded), "weights_value" (a folded weight is not finite, or a
/// scale is 0: tensor and index).
Weights fold(const Weights& weights);

}  // namespace shardproof
