#pragma once

#include <cmath>

#include "weights/model/model_config.h"

namespace shardproof::oracle {

/// The numbers that a model's formulas have besides its weights. Of a base-2 model they are in the
/// weights already, but for eps, which is scaled as the residual stream is where the table is tied:
/// by c² with c = (float)(log2(e)·logit_scale). Not by weights/model/softmax.h, which the engine
/// reads.
struct Constants {
  explicit Constants(const ModelConfig& config)
      : base2(config.softmax == Softmax::base2),
        eps(config.eps),
        of_logits(base2 ? 1 : static_cast<double>(config.logit_scale)),
        of_sampling(base2 ? 0.6931471805599453 : 1) {
    if (!base2 || !config.tied) return;
    const float c =
        static_cast<float>(1.4426950408889634 * static_cast<double>(config.logit_scale));
    const double square = static_cast<double>(c) * static_cast<double>(c);
    eps = config.eps * square;
  }

  /// What S(q, k) of so many channels is multiplied by.
  template <class Extent>
  double of_scores(Extent Q) const {
    return base2 ? 1 : 1 / std::sqrt(static_cast<double>(Q));
  }

  bool base2;
  double eps;          ///< of the norms
  double of_logits;    ///< what S(final_norm, U) is multiplied by
  double of_sampling;  ///< and what a logit is, to be of base e: ln 2 of a base-2 model
};

}  // namespace shardproof::oracle
