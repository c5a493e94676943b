#pragma once

#include <cstdint>

#include "weights/base/error.h"

namespace shardproof::cost {

/// Speculative sampling: a draft model proposes γ tokens in sequence, the model verifies all of
/// them in one pass and adds one of its own; the first rejected token ends the round.
struct Speculation {
  double acceptance =
      0.8;  ///< a: probability that a proposal is accepted, independent of earlier ones
  double draft_cost = 0.05;  ///< c: time of a draft step over a step of the model
  /// v: time of a pass over γ + 1 tokens relative to one; 1 if weights and caches bound it.
  double verify_cost = 1.0;
};

/// Returns the expected tokens of one round: (1 − a^(γ+1))/(1 − a), γ + 1 if a is 1. Throws Error:
/// "speculation_c1" (a below 0 or above 1), "speculation_c2" (γ below 1).
double tokens_of_round(const Speculation& speculation, std::int64_t gamma);

/// Returns the speed-up of text generation: tokens of a round over its cost in steps of the model,
/// γ·c + v. Throws what tokens_of_round throws, and Error("speculation_c3", ...) if the draft's
/// cost is below 0 or the verification's is not above 0.
double speed_up(const Speculation& speculation, std::int64_t gamma);

/// Returns the γ from 1 to `most` with the largest speed-up, the smaller of two equal ones.
std::int64_t best_gamma(const Speculation& speculation, std::int64_t most);

}  // namespace shardproof::cost
