#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/program/execute.h"
#include "engine/program/fault_hooks.h"
#include "engine/run/plan.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Fills the token array after the end of a stopped row.
inline constexpr std::int32_t kNoToken = -1;

/// Condition on which rows end early.
struct Stop {
  std::int32_t token = 0;  ///< the token that ends a row
  std::int64_t rows = 0;   ///< the run ends when the first `rows` rows have ended; 0: all rows
};

/// Runs the model on the simulated chips, pass by pass, and returns the generated tokens, int32 [B,
/// gen]: for each row, one per pass that samples it. Each phase's weights are placed in their
/// resident layouts before anything runs; phases whose resident layouts agree share them. `prompt`
/// is int32 [B, positions]; with prefixes, its first columns hold each row's prefix, and of rows
/// that share one the first row's is read. A row that has sampled the token of `stop` ends with it:
/// from then on it is padding, its slots stay unwritten, and its tokens are kNoToken; the run ends
/// with the last of the rows that `stop` counts. Checks nothing itself; if `findings` end the run,
/// returns the tokens so far. Throws what execute() throws, and what a hook of `faults` throws.
///
/// With regime=field, `field` computes the numbers and counts what the run asks of it. Only config
/// and stored_type() of `weights` matter, `prompt` holds the ids of all positions, including those
/// of decode steps (docs/field.md section 1.5), and the result is zeros.
IntTensor run_inference(const RunPlan& plan, const Weights& weights, const IntTensor& prompt,
                        Threads& threads, Observer* observer = nullptr, const Hazards& hazards = {},
                        const FaultHooks& faults = {}, Findings* findings = nullptr,
                        const std::shared_ptr<const Field>& field = nullptr,
                        const std::optional<Stop>& stop = {});

}  // namespace shardproof
