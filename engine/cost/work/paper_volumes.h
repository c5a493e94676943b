#pragma once

#include "engine/cost/formulas/pass.h"
#include "engine/strategies/strategy.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

/// The elements that one chip sends for the FFN of one layer, as the paper counts them (sections
/// 3.2, A.2): an FFN of two matrices without biases; D of each collective without the factor
/// (K−1)/K; gathers of one weight over several axes are one gather; without the sums of the norm,
/// which are one number a token. Under ws2d:batch 2BL(E/X + F/YZ), under wg-xyz 2EF.
/// Throws what partition() throws.
double paper_volume(const Strategy& strategy, const ModelConfig& model, const Torus& torus,
                    const Pass& pass);

}  // namespace shardproof::cost
