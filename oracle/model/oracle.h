#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "oracle/request/filed.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"
#include "weights/model/sampling.h"
#include "weights/storage/weights.h"

namespace shardproof::oracle {

/// What the oracle is asked: a model, its weights, a prompt, and the passes to run.
/// It knows no torus and no layout, so one answer serves every layout.
struct Request {
  Numerics numerics;  ///< regime exact only
  IntTensor prompt;   ///< int32 [B, L], with equal ids where rows share a prefix
  Passes passes;
  Sampling sampling = {};
  std::uint64_t seed = 1;                  ///< of the random numbers that tokens are drawn by
  std::vector<std::int64_t> row_ids = {};  ///< what each row draws by; without them its number
  int threads = 1;                         ///< that share the work; no bit depends on them

  std::int64_t row(std::size_t b) const {
    return row_ids.empty() ? static_cast<std::int64_t>(b) : row_ids.at(b);
  }
};

/// Every value of a run in floats: f32.
struct Answer : Filed<Tensor> {
  std::map<std::string, IntTensor> tokens;  ///< "PASS.token", int32 [B]
  std::map<std::string, Draws> draws;       ///< of each pass that samples, by its name
};

/// Runs the model. Where rows have fewer tokens than a pass, or go on from prefixes, each row runs
/// alone, from its first token to its last over one cache, and nothing of another row or of padding
/// is there to be seen. `weights` are as generated or loaded; the rounding of numerics.weights
/// happens inside. Throws Error: "oracle_regime" (another than exact), "oracle_range" (no prompt,
/// no pass, a pass that is not of the prompt's rows and positions, a row that goes on beyond the
/// end of its tokens, rows of one prefix with different ids there, passes over prefixes that are
/// not those of the rows, names of passes that are not each once and in order, a token id outside
/// [0, V), more positions than the RoPE table has), "oracle_finite" (a checkpoint, raw value or
/// statistic turned out non-finite: id and index named); and what require_ieee and
/// validate(weights) throw.
Answer run(const Weights& weights, const Request& request);
/// The same of weights that as_stored has made of valid ones, for request.numerics.weights.
Answer run_stored(const Weights& stored, const Request& request);

}  // namespace shardproof::oracle
