#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/execute.h"
#include "engine/program/typing.h"
#include "engine/strategies/programs.h"
#include "weights/error.h"
#include "weights/weights.h"

namespace shardproof {

/// One run: a model on a torus, prefill under one strategy, decode under another.
struct Inference {
  Torus torus;
  ModelConfig config;
  Numerics numerics;
  Strategy prefill, decode;
  std::int64_t chunk = 0;  ///< prefill chunk length; 0 means the whole prompt
  std::int64_t gen = 1;    ///< tokens to generate, the first from the prefill's logits
  /// A layer program of the user's in place of both strategies'; it outlives the run.
  const Program* layer = nullptr;
};

/// The programs of a run. Tests mutate them.
struct InferencePrograms {
  PhasePrograms prefill, decode;
  Program hand_over;
};
InferencePrograms build_programs(const Inference& inference);

/// Throws what require_legal throws for either phase (for a user's layer, what require_layer
/// throws), and Error: "case_numerics" (weights or a regime the engine does not execute),
/// "case_gen", "case_batch", "case_prompt" (below 1), "case_chunk" (not from 1 to the prompt's
/// length), "case_positions" (more positions than the RoPE tables have).
void require_legal(const Inference& inference, std::int64_t batch, std::int64_t prompt);

/// Type-checks one program of a run for a pass over L positions with M cached ones before it
/// (hand-over: caches of length M), and returns the types of its values. Throws what check() of one
/// program throws (engine/program/typing.h).
std::map<std::string, Type> check(const Program& program, const Inference& inference,
                                  std::int64_t batch, std::int64_t L, std::int64_t M);

/// Type-checks every program of the run for the shapes it will meet. Throws likewise.
void check(const InferencePrograms& programs, const Inference& inference, std::int64_t batch,
           std::int64_t prompt);

/// Runs the model on the simulated chips and returns the generated tokens, int32 [B, gen]. Each
/// phase's weights are placed in its rest layout before anything runs; phases whose rest layouts
/// agree share them. Checks nothing by itself; throws what execute() throws.
IntTensor run_inference(const Inference& inference, const InferencePrograms& programs,
                        const Weights& weights, const IntTensor& prompt, Threads& threads,
                        Observer* observer = nullptr, const Hazards& hazards = {});

/// Bytes that the run and the oracle's answer to it hold, about: weights, unsharded and placed,
/// caches, every checkpoint of every pass, and the values of a layer that live at once; in the f32
/// regime also what its judge holds.
double estimated_bytes(const Inference& inference, std::int64_t batch, std::int64_t prompt);

}  // namespace shardproof
