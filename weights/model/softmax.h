#pragma once

#include "weights/model/model_config.h"

namespace shardproof {

// Constants that a base-2 model changes (docs/spec.md section 2.9). A model's text states those of
// the model it was folded from; these functions return those that programs compute with.

/// a = log2(e) of the specification, and ln 2.
inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr double kLn2 = 0.6931471805599453;

/// Returns c = (float)(a·logit_scale), which is folded into the weights. Depends on the model's
/// logit_scale only, not on its softmax.
float folded_scale(const ModelConfig& config);
/// Returns eps of the norms: the text's, or eps·c² in a base-2 model with a tied table, where the
/// residual stream is scaled by c.
double eps_of_norms(const ModelConfig& config);
/// Returns the factor of S of the logits: logit_scale, or 1 if the weights include it.
float scale_of_logits(const ModelConfig& config);
/// Returns the factor of S of a score over `Q` channels: 1/sqrt((double)Q), or 1 if wq includes it.
double scale_of_scores(Softmax softmax, double Q);

/// Returns a stored logit in base e: unchanged, or times ln 2 in a base-2 model.
double natural_logit(const ModelConfig& config, float logit);

}  // namespace shardproof
