#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/numeric/threads.h"
#include "golden/rerun/arithmetic.h"
#include "weights/base/tensor.h"
#include "weights/model/passes.h"
#include "weights/storage/weights.h"

namespace shardproof::rerun {

/// A checkpoint whose distance is asked for: embed, a norm, q to v, rotated ones, a cache, attn, of
/// a block's outputs and FFN, or logits.
struct Asked {
  std::string id;                   ///< "decode.1.layer0.out"
  const Tensor* exact = nullptr;    ///< the exact regime's, which outlives the runs
  std::vector<bool> left_out = {};  ///< elements that do not count; empty: none
};

/// Of the exact value, over the elements that count.
double root_mean_square(const Asked& asked);

/// What a case's runs are made of.
struct Question {
  const Weights& weights;  ///< as stored for the run; of int8 codes and scales
  const Passes& passes;
  const std::map<std::string, IntTensor>& ids;  ///< [BL] of each pass, by pass
  Arithmetic arithmetic = {};
};

/// The passes that a run can make, from the first on: those before one that has no ids, some that
/// are outside the vocabulary, or positions beyond the RoPE tables.
std::vector<PassPlan> runnable(const Question& question);

/// The logical model, unsharded, run `runs` times in this arithmetic, each sum in an order of its
/// own: of each value that is asked for (by its place there) and of each run the largest distance
/// from the exact value, over the root mean square of that; infinity where the run is not finite.
/// An asked value has no distances where no run makes it, or its pass is not runnable. Nothing
/// depends on the threads.
std::vector<std::vector<double>> distances(const Question& question,
                                           const std::vector<Asked>& asked, int runs,
                                           std::uint64_t seed, Threads& threads);

}  // namespace shardproof::rerun
