#include "engine/cost/analysis/speculation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardproof::cost {

double tokens_of_round(const Speculation& s, std::int64_t gamma) {
  if (!(s.acceptance >= 0.0 && s.acceptance <= 1.0))
    throw Error("speculation_c1", fmt::format("acceptance={}: from 0 to 1; nearest legal: {}",
                                              s.acceptance, s.acceptance > 1.0 ? 1 : 0));
  if (gamma < 1)
    throw Error("speculation_c2",
                fmt::format("gamma={}: must be at least 1; nearest legal: 1", gamma));
  const auto tokens = static_cast<double>(gamma + 1);
  if (s.acceptance == 1.0) return tokens;
  // If a^n is near 1, its difference to 1 would cancel. If a is 0, the logarithm is -inf, and expm1
  // of that is -1.
  return -std::expm1(tokens * std::log(s.acceptance)) / (1.0 - s.acceptance);
}

double speed_up(const Speculation& s, std::int64_t gamma) {
  const double tokens = tokens_of_round(s, gamma);
  if (!(s.draft_cost >= 0.0) || !std::isfinite(s.draft_cost))
    throw Error("speculation_c3",
                fmt::format("draft cost {}: must be at least 0 and finite; nearest legal: 0",
                            s.draft_cost));
  if (!(s.verify_cost > 0.0) || !std::isfinite(s.verify_cost))
    throw Error("speculation_c3",
                fmt::format("verify cost {}: must be above 0 and finite; usual: 1", s.verify_cost));
  return tokens / (static_cast<double>(gamma) * s.draft_cost + s.verify_cost);
}

std::int64_t best_gamma(const Speculation& s, std::int64_t most) {
  std::int64_t best = 1;
  for (std::int64_t gamma = 2; gamma <= most; ++gamma)
    if (speed_up(s, gamma) > speed_up(s, best)) best = gamma;
  return best;
}

}  // namespace shardproof::cost
