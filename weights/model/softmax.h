#pragma once

#include "weights/model/model_config.h"

namespace shardproof {

// What a base-2 model changes of a model's constants (docs/spec.md section 2.9). Its text has those
// of the model that it was folded from; what programs compute with is here.

/// a of the specification, log2(e), and ln 2.
inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr double kLn2 = 0.6931471805599453;

/// c = (float)(a·logit_scale), which is folded into the weights. Of the constants in the model's
/// text alone: whatever its softmax.
float folded_scale(const ModelConfig& config);
/// eps of the norms: of the text, or eps·c² where the residual stream is scaled by c, in a base-2
/// model whose table is tied.
double eps_of_norms(const ModelConfig& config);
/// What S of the logits is multiplied by: logit_scale, or 1 where the weights have it.
float scale_of_logits(const ModelConfig& config);
/// What S of a score of `Q` channels is multiplied by: 1/sqrt((double)Q), or 1 where wq has it.
double scale_of_scores(Softmax softmax, double Q);

/// A stored logit in units of base e: itself, or of a base-2 model times ln 2.
double natural_logit(const ModelConfig& config, float logit);

}  // namespace shardproof
