#pragma once

#include "engine/collectives/moves.h"
#include "engine/numeric/threads.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"
#include "weights/model/sampling.h"

namespace shardproof {

// The ops of random sampling (docs/spec.md section 2.10), over a vocabulary that is sharded: each
// chip works on its block, and what it must know of the others' comes to it by collectives. Of
// floats only: the field regime samples greedily.

/// e [BV] of logits z [BV]; `best` [BC] has the largest logit of each block of the vocabulary, and
/// so of all. A logit is in units of `unit`. Ids from `V` on, where it is not 0, are padding: they
/// are not looked at, and +0 stands there. Throws Error("engine_finite", ...) where t is not
/// finite.
Sharded weigh(const Sharded& z, const Sharded& best, double temperature, Threads& threads,
              double unit = 1.0, std::int64_t V = 0);

/// What a threshold search finds.
struct Threshold {
  Sharded sums;   ///< [BW] int32: what every round added up over all chips
  Sharded floor;  ///< [B], the largest f32 that keeps enough
  Sharded kept;   ///< [BV]: e where it is at least the floor, else +0
};

/// How many elements are ≥ a threshold, or what they sum up to, is asked in one round for each bit
/// of it, the highest first, of all chips that share a row: `reduce` is the plan of that sum, over
/// local [B, words] int32. top_k keeps at least k elements, k = 0: all that there are; top_p at
/// least p of the exact sum.
Threshold top_k(const Sharded& e, std::int64_t k, const Moves& reduce, Threads& threads);
Threshold top_p(const Sharded& e, double p, const Moves& reduce, Threads& threads);
/// The words of one round of each, and of all rounds.
inline constexpr std::int64_t kCountWords = 1;
inline constexpr std::int64_t kTopKWords = kSearchRounds * kCountWords;
inline constexpr std::int64_t kTopPWords = (1 + kSearchRounds) * std::int64_t{kSumWords};

/// The exact sum of each block, [BCW] int32, as words.
Sharded masses(const Sharded& e, Threads& threads);

/// Where the random number of each row falls.
struct Drawn {
  Sharded hit;    ///< [BC], 1 for the block where it does, else 0
  Sharded index;  ///< [BC] int32, the token there, else the block's first
};
/// `masses` [BCW] are those of all blocks of e.
Drawn draw(const Sharded& e, const Sharded& masses, const Draws& draws, Threads& threads);

}  // namespace shardproof
