#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "oracle/request/model_values.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"
#include "weights/model/sampling.h"
#include "weights/storage/weights.h"

namespace shardproof::oracle {

/// Input of the oracle besides the model's weights: a prompt and the passes to run. It has no torus
/// or layout, so one answer serves every layout.
struct Request {
  Numerics numerics;  ///< regime exact only
  IntTensor prompt;   ///< int32 [B, L], with equal ids where rows share a prefix
  Passes passes;
  Sampling sampling = {};
  std::uint64_t seed = 1;                  ///< seed of the numbers that draw tokens
  std::vector<std::int64_t> row_ids = {};  ///< sampling ids of rows; default: row index
  int threads = 1;                         ///< worker threads; no bit depends on it

  std::int64_t row(std::size_t b) const {
    return row_ids.empty() ? static_cast<std::int64_t>(b) : row_ids.at(b);
  }
};

/// All values of a run in floats: f32.
struct Answer : ModelValues<Tensor> {
  std::map<std::string, IntTensor> tokens;  ///< "PASS.token", int32 [B]
  std::map<std::string, Draws> draws;       ///< of each sampling pass, by its name
};

/// Runs the model. If rows have fewer tokens than a pass, or continue prefixes, each row runs
/// alone, from its first token to its last over one cache, so that it cannot see another row or
/// padding. `weights` are as generated or loaded; run() applies the rounding of numerics.weights.
/// Throws Error: "oracle_regime" (not exact), "oracle_range" (no prompt, no pass, a pass that does
/// not match the prompt's rows and positions, a row that continues beyond the end of its tokens,
/// rows of one prefix with different ids there, passes over prefixes that are not those of the
/// rows, names of passes that are not unique and in order, a token id outside [0, V), more
/// positions than the RoPE table has), "oracle_finite" (a non-finite checkpoint, raw value or
/// statistic: id and index named); and what require_ieee and validate(weights) throw.
Answer run(const Weights& weights, const Request& request);
/// Runs the model on the result of as_stored(valid weights, request.numerics.weights).
Answer run_stored(const Weights& stored, const Request& request);

}  // namespace shardproof::oracle
