#pragma once

#include <cstdint>

#include "weights/base/error.h"

namespace shardproof::cost {

/// Speculative sampling: a draft model proposes γ tokens one after the other, the model judges all
/// of them in one pass and adds one of its own; the first that is refused ends the round.
struct Speculation {
  double acceptance = 0.8;   ///< a: the chance of each proposal, whatever came before
  double draft_cost = 0.05;  ///< c: a step of the draft over a step of the model
  /// v: the model's pass over γ + 1 tokens over one over 1 token; 1 where weights and caches are
  /// what it waits for.
  double verify_cost = 1.0;
};

/// Tokens of one round: (1 − a^(γ+1))/(1 − a), γ + 1 where a is 1. Throws Error: "speculation_c1"
/// (a below 0 or above 1), "speculation_c2" (γ below 1).
double tokens_of_round(const Speculation& speculation, std::int64_t gamma);

/// Tokens of a round over what it costs in steps of the model, γ·c + v: how much faster text is
/// made. Throws what tokens_of_round throws, and Error("speculation_c3", ...) on a cost of the
/// draft below 0 or of the verification not above 0.
double speed_up(const Speculation& speculation, std::int64_t gamma);

/// The γ from 1 to `most` with the largest speed-up, of two the smaller.
std::int64_t best_gamma(const Speculation& speculation, std::int64_t most);

}  // namespace shardproof::cost
