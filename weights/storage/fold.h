#pragma once

#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// The weights of the same model with softmax=base2: its constants folded into them, each factor
/// in f64 and cast to f32 once (docs/spec.md section 2.9). Of weights that are kept as int8 the
/// scales take what their matrices would. Throws Error: "weights_fold" (they are of a base-2 model
/// already), "model_value" (a constant of the model cannot be folded), "weights_value" (a weight is
/// not finite once it is folded, or a scale is 0: tensor and index).
Weights fold(const Weights& weights);

}  // namespace shardproof
