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

/// What stands after the end of a row that was stopped.
inline constexpr std::int32_t kNoToken = -1;

/// Where rows end early.
struct Stop {
  std::int32_t token = 0;  ///< a row ends with it
  std::int64_t rows = 0;   ///< the run ends with the last of these first rows; 0: of all
};

/// Runs the model on the simulated chips, pass by pass, and returns the generated tokens, int32
/// [B, gen]: of each row one for each pass that samples it. Each phase's weights are placed in
/// their resident layouts before anything runs; phases whose resident layouts agree share them.
/// `prompt` int32 [B, positions], whose first columns hold the prefix of each row, if there are
/// prefixes: of rows that share one, the first row's is read. A row that has sampled the token of
/// `stop` ends with it: from then on it is padding, its slots stay unwritten, and kNoToken stands
/// for its tokens; the run ends with the last of the rows that `stop` counts. Checks nothing by
/// itself; where `findings` end the run, returns the tokens so far. Throws what execute() throws,
/// and what a hook of `faults` throws.
///
/// With regime=field `field` is what its numbers are made of and counted by; of `weights` only
/// config and kept() matter, `prompt` holds the ids of all positions, of decode steps too
/// (docs/field.md section 1.5), and zeros are returned.
IntTensor run_inference(const RunPlan& plan, const Weights& weights, const IntTensor& prompt,
                        Threads& threads, Observer* observer = nullptr, const Hazards& hazards = {},
                        const FaultHooks& faults = {}, Findings* findings = nullptr,
                        const std::shared_ptr<const Field>& field = nullptr,
                        const std::optional<Stop>& stop = {});

}  // namespace shardproof
