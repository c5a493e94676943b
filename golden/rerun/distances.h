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

/// A checkpoint whose distance is requested: embed, a norm, q to v, rotated ones, a cache, attn, a
/// block's or the FFN's output, or logits.
struct RequestedValue {
  std::string id;                   ///< "decode.1.layer0.out"
  const Tensor* exact = nullptr;    ///< value of the exact regime; must outlive the runs
  std::vector<bool> left_out = {};  ///< elements to skip; empty: none
};

/// Returns the root mean square of the exact value over the elements that count.
double root_mean_square(const RequestedValue& asked);

/// The inputs of a case's runs.
struct Question {
  const Weights& weights;  ///< as stored for the run; for int8 codes and scales
  const Passes& passes;
  const std::map<std::string, IntTensor>& ids;  ///< [BL], by pass
  Arithmetic arithmetic = {};
};

/// Returns the leading passes that a run can compute: those before the first one without ids, with
/// ids outside the vocabulary, or with positions beyond the RoPE tables.
std::vector<PassPlan> runnable(const Question& question);

/// Runs the unsharded model `runs` times in this arithmetic, with a different summation order each
/// time. Returns, for each requested value (by index) and each run, the largest distance from the
/// exact value over that value's root mean square; infinity if the run is not finite. A requested
/// value has no distances if no run computes it or its pass is not runnable. The result does not
/// depend on the threads.
std::vector<std::vector<double>> distances(const Question& question,
                                           const std::vector<RequestedValue>& asked, int runs,
                                           std::uint64_t seed, Threads& threads);

class Watch;  // golden/rerun/run.h

/// Runs the model over these leading passes, of runnable(), once for each watch, as distances()
/// does, and shows each watch what its run computes.
void watch_runs(const Question& question, const std::vector<PassPlan>& passes, std::uint64_t seed,
                Threads& threads, const std::vector<Watch*>& watches);

}  // namespace shardproof::rerun
