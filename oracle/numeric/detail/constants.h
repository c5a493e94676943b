#pragma once

#include <cmath>

#include "weights/model/model_config.h"

namespace shardproof::oracle {

/// Constants of a model's formulas besides its weights. A base-2 model has them folded into its
/// weights, except eps, which with a tied table scales as the residual stream does: by c² with c =
/// (float)(log2(e)·logit_scale). Deliberately independent of weights/model/softmax.h, which the
/// engine uses.
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

  /// Returns the factor of S(q, k) over Q channels.
  template <class Extent>
  double of_scores(Extent Q) const {
    return base2 ? 1 : 1 / std::sqrt(static_cast<double>(Q));
  }

  bool base2;
  double eps;          ///< of the norms
  double of_logits;    ///< factor of S(final_norm, U)
  double of_sampling;  ///< factor of a logit in base e: ln 2 in a base-2 model
};

}  // namespace shardproof::oracle
