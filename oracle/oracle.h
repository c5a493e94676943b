#pragma once

#include <map>
#include <string>

#include "oracle/filed.h"
#include "weights/error.h"
#include "weights/numerics.h"
#include "weights/passes.h"
#include "weights/weights.h"

namespace shardproof::oracle {

/// What the oracle is asked: a model, its weights, a prompt, and the passes to run.
/// It knows no torus and no layout, so one answer serves every layout.
struct Request {
  Numerics numerics;  ///< regime exact only
  IntTensor prompt;   ///< int32 [B, L]
  Passes passes;
};

/// Every value of a run in floats: f32.
struct Answer : Filed<Tensor> {
  std::map<std::string, IntTensor> tokens;  ///< "PASS.token", int32 [B]
};

/// Runs the model. `weights` are as generated or loaded; the rounding of numerics.weights happens
/// inside. Throws Error: "oracle_regime" (another than exact), "oracle_range" (no prompt, no
/// pass, a pass that is not of the prompt's rows and positions, a row that goes on beyond the end
/// of its tokens, names of passes that are not each once and in order, a token id outside [0, V),
/// more positions than the RoPE table has), "oracle_finite" (a checkpoint, raw value or statistic
/// turned out non-finite: id and index named); and what require_ieee and validate(weights) throw.
Answer run(const Weights& weights, const Request& request);

}  // namespace shardproof::oracle
