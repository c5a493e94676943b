#pragma once

#include <memory>

#include "engine/program/execute.h"
#include "engine/program/fault_hooks.h"
#include "engine/run/plan.h"
#include "weights/error.h"
#include "weights/weights.h"

namespace shardproof {

/// Runs the model on the simulated chips, pass by pass, and returns the generated tokens, int32
/// [B, gen], one for each pass that samples. Each phase's weights are placed in their resident
/// layouts before anything runs; phases whose resident layouts agree share them. `prompt` int32 [B,
/// positions]. Checks nothing by itself; where `findings` end the run, returns the tokens so far.
/// Throws what execute() throws, and what a hook of `faults` throws.
///
/// With regime=field `field` is what its numbers are made of and counted by; of `weights` only
/// config and kept() matter, `prompt` holds the ids of all positions, of decode steps too
/// (docs/field.md section 1.5), and zeros are returned.
IntTensor run_inference(const RunPlan& plan, const Weights& weights, const IntTensor& prompt,
                        Threads& threads, Observer* observer = nullptr, const Hazards& hazards = {},
                        const FaultHooks& faults = {}, Findings* findings = nullptr,
                        const std::shared_ptr<const Field>& field = nullptr);

}  // namespace shardproof
