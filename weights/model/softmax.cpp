#include "weights/model/softmax.h"

#include <cmath>

namespace shardproof {

float folded_scale(const ModelConfig& config) {
  return static_cast<float>(kLog2E * static_cast<double>(config.logit_scale));
}

double eps_of_norms(const ModelConfig& config) {
  if (config.softmax == Softmax::base_e || !config.tied) return config.eps;
  const auto c = static_cast<double>(folded_scale(config));
  return config.eps * (c * c);
}

float scale_of_logits(const ModelConfig& config) {
  return config.softmax == Softmax::base2 ? 1.0F : config.logit_scale;
}

double scale_of_scores(Softmax softmax, double Q) {
  return softmax == Softmax::base2 ? 1.0 : 1.0 / std::sqrt(Q);
}

double natural_logit(const ModelConfig& config, float logit) {
  const auto stored = static_cast<double>(logit);
  return config.softmax == Softmax::base2 ? stored * kLn2 : stored;
}

}  // namespace shardproof
