#pragma once

#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof::oracle {

/// The weights as numerics.weights keeps them, by the oracle's own rounding: bf16 of every W matrix
/// and the table, or (int8) codes and scales in place of the W matrices (docs/spec.md section 2.4).
/// Weights that are kept as int8 already stay as they are. Throws Error("weights_int8", ...) on
/// another type of such weights.
Weights as_stored(const Weights& weights, WeightType type);

}  // namespace shardproof::oracle
