#pragma once

#include <vector>

#include "engine/numeric/threads.h"
#include "engine/program/program.h"
#include "golden/scalar/value.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"
#include "weights/model/sampling.h"

namespace shardproof::scalar {

/// Settings shared by the ops of a run.
struct Setting {
  const ModelConfig& config;
  Torus torus;
  Schedule schedule = Schedule::group;
  /// The rows of the pass: `last` takes their last tokens, `append` and `attend` skip their
  /// padding. If empty, every row has L tokens.
  std::vector<PassRows> rows = {};
  bool act_bf16 = false;       ///< store, in an expression, rounds to bf16
  std::int64_t prefix = 0;     ///< positions before the first slot of the rows' own caches
  bool acc_bf16 = false;       ///< this op's sums round to bf16 after every fma and addition
  bool wire_bf16 = false;      ///< this op's partial sums round to bf16 where they are sent
  std::int64_t placed_V = 0;   ///< ids of the padded table; 0: as many as in the model
  Draws draws = {};            ///< for a pass that samples
  Threads* threads = nullptr;  ///< null: the calling thread; results do not depend on it

  Threads& by() const { return threads != nullptr ? *threads : calling_thread(); }
};

/// Returns the results of one op in the f32 regime (docs/spec.md section 1.2), computed by plain
/// scalar loops and std::fma on whole tensors. Shares nothing with the engine but the program's
/// notation. Throws Error: "scalar_c1" (an op kind that the model does not know), "scalar_c2"
/// (layouts under which no order is defined), "rope_range", "append_range" (a position outside the
/// RoPE table or the cache), and what constant_of throws.
std::vector<Value> apply(const Op& op, const std::vector<const Value*>& args,
                         const Setting& setting);

}  // namespace shardproof::scalar
