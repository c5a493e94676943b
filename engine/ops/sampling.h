#pragma once

#include "engine/collectives/moves.h"
#include "engine/numeric/threads.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"
#include "weights/model/sampling.h"

namespace shardproof {

// The ops of random sampling (docs/spec.md section 2.10) over a sharded vocabulary: each chip works
// on its block and learns about the others by collectives. Floats only: the field regime samples
// greedily.

/// Returns e [BV] of logits z [BV]. `best` [BC] holds the largest logit of each block of the
/// vocabulary. A logit is in units of `unit`. If V is not 0, ids from `V` on are padding: they are
/// ignored, and their e is +0. Throws Error("engine_finite", ...) if t is not finite.
Sharded weigh(const Sharded& z, const Sharded& best, double temperature, Threads& threads,
              double unit = 1.0, std::int64_t V = 0);

/// Result of a threshold search.
struct Threshold {
  Sharded sums;   ///< [BW] int32: each round's sums over all chips
  Sharded floor;  ///< [B], the largest f32 threshold that keeps enough
  Sharded kept;   ///< [BV]: e where it is at least the floor, otherwise +0
};

/// Finds a threshold bit by bit, the highest bit first. Each round sums, over all chips that share
/// a row, the number (top_k) or the mass (top_p) of elements ≥ a candidate; `reduce` is the plan of
/// that sum, over local [B, words] int32. top_k keeps at least k elements (k = 0: all); top_p at
/// least p of the exact sum.
Threshold top_k(const Sharded& e, std::int64_t k, const Moves& reduce, Threads& threads);
Threshold top_p(const Sharded& e, double p, const Moves& reduce, Threads& threads);
/// The words of one round of top_k, and of all rounds of top_k and of top_p.
inline constexpr std::int64_t kCountWords = 1;
inline constexpr std::int64_t kTopKWords = kSearchRounds * kCountWords;
inline constexpr std::int64_t kTopPWords = (1 + kSearchRounds) * std::int64_t{kSumWords};

/// The exact sum of each block as words: [BCW] int32.
Sharded masses(const Sharded& e, Threads& threads);

/// The place where each row's random number falls.
struct TokenDraw {
  Sharded hit;    ///< [BC], 1 for the block that it falls in, otherwise 0
  Sharded index;  ///< [BC] int32, the token that it falls on, or the block's first token
};
/// Draws a token for each row; `masses` [BCW] holds the masses of all blocks of e.
TokenDraw draw(const Sharded& e, const Sharded& masses, const Draws& draws, Threads& threads);

}  // namespace shardproof
