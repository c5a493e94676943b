#pragma once

#include <cstdint>
#include <vector>

#include "engine/layouts/around.h"
#include "engine/layouts/partition.h"
#include "engine/program/execute.h"
#include "engine/program/typing.h"
#include "engine/strategies/strategy.h"
#include "weights/error.h"
#include "weights/weights.h"

namespace shardproof {

/// Layer programs of the user's in place of a phase's strategy; they outlive the run.
struct GivenLayers {
  const Program* prefill = nullptr;
  const Program* decode = nullptr;
  bool any() const { return prefill != nullptr || decode != nullptr; }
};

/// One run: a model on a torus, prefill under one strategy, decode under another.
struct Inference {
  Torus torus;
  ModelConfig config;
  Numerics numerics;
  Strategy prefill, decode;
  std::int64_t batch = 1;
  std::int64_t prompt = 1;
  std::int64_t chunk = 0;  ///< prefill chunk length; 0 means the whole prompt
  std::int64_t gen = 1;    ///< tokens to generate, the first from the prefill's logits
  GivenLayers layers = {};

  /// The lengths of the prefill's passes that differ: the chunk's, and the rest's if there is one.
  std::vector<std::int64_t> lengths() const;
};

/// The programs of a run. Tests mutate them.
struct InferencePrograms {
  PhasePrograms prefill;
  PhasePrograms decode;  ///< of a run without decode steps the prefill's
  Program hand_over;
};
/// Throws what partition() throws of either phase.
InferencePrograms build_programs(const Inference& inference);

/// A strategy's layer, as the prefill of this run or as its decode step.
PartitionedLayer partitioned(const Inference& inference, const Strategy& strategy, bool prefill);

/// Throws what require_legal, require_decodes and require_lengths throw for either phase (for a
/// user's layer, what require_layer and check() throw), and Error: "case_numerics" (weights or a
/// regime the engine does not execute), "case_gen", "case_batch", "case_prompt" (below 1),
/// "case_chunk" (not from 1 to the prompt's length), "case_positions" (more positions than the RoPE
/// tables have). That a table breaks a rule is found by build_programs.
void require_legal(const Inference& inference);

/// Type-checks one program of a run for a pass over L positions with M cached ones before it
/// (hand-over: caches of length M), and returns the types of its values. Throws what check() of one
/// program throws (engine/program/typing.h).
std::map<std::string, Type> check(const Program& program, const Inference& inference,
                                  std::int64_t L, std::int64_t M);

/// Type-checks every program of the run for the shapes it will meet. Throws likewise.
void check(const InferencePrograms& programs, const Inference& inference);

/// Runs the model on the simulated chips and returns the generated tokens, int32 [B, gen]. Each
/// phase's weights are placed in its rest layout before anything runs; phases whose rest layouts
/// agree share them. Checks nothing by itself; throws what execute() throws, and what a hook of
/// `faults` throws.
IntTensor run_inference(const Inference& inference, const InferencePrograms& programs,
                        const Weights& weights, const IntTensor& prompt, Threads& threads,
                        Observer* observer = nullptr, const Hazards& hazards = {},
                        const FaultHooks& faults = {});

/// Bytes that the run and the oracle's answer to it hold, about: weights, unsharded and placed,
/// caches, every checkpoint of every pass, and the values of a layer that live at once; in the f32
/// regime also what its judge holds.
double estimated_bytes(const Inference& inference, const InferencePrograms& programs);

}  // namespace shardproof
