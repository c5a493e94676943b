#pragma once

#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof::oracle {

/// Returns the weights as stored by numerics.weights, by the oracle's own rounding: bf16 of every W
/// matrix and the table, or (int8) codes and scales in place of the W matrices (docs/spec.md
/// section 2.4). int8 weights are returned unchanged. Throws Error("weights_int8", ...) if int8
/// weights are asked for as another type.
Weights as_stored(const Weights& weights, NumberFormat type);

}  // namespace shardproof::oracle
