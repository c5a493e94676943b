#pragma once

#include "engine/cost/formulas/pass.h"
#include "engine/strategies/strategy.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

/// Returns the elements that one chip sends for the FFN of one layer, counted as in the paper
/// (sections 3.2, A.2): an FFN of two matrices without biases; D for each collective, without the
/// factor (K−1)/K; gathers of one weight over several axes count as one; the norm's sums, one
/// number a token, are left out. ws2d:batch gives 2BL(E/X + F/YZ), wg-xyz 2EF. Throws what
/// partition() throws.
double paper_volume(const Strategy& strategy, const ModelConfig& model, const Torus& torus,
                    const Pass& pass);

}  // namespace shardproof::cost
