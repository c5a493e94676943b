#pragma once

#include <cstdint>

#include "engine/finding.h"
#include "engine/layouts/around.h"
#include "engine/layouts/partition.h"
#include "engine/run/case.h"
#include "weights/error.h"
#include "weights/passes.h"

namespace shardproof {

/// What a run does, made once from its case: the passes, and each phase's programs with their
/// torus. The oracle reads its passes; engine, judges, estimates and traces all of it. What says
/// how many rows, positions or tokens there are is the passes: a user may put others in their
/// place, of rows that stand at positions of their own. Tests mutate the programs, too.
struct RunPlan {
  Case given;  ///< what it was made from; of it the run reads model and numerics, and
               ///< traces and explanations torus and name
  Passes passes;
  PhasePrograms prefill, decode;  ///< of a run without decode steps the decode's are the prefill's
  Program hand_over;              ///< of a layer's caches, after the prefill and on its torus

  const PhasePrograms& programs(Phase phase) const {
    return phase == Phase::prefill ? prefill : decode;
  }
};

/// Throws what validate(ModelConfig), validate(Numerics), require_legal, require_decodes and
/// require_lengths throw for either phase (for a layer program, what require_layer and check()
/// throw), what partition() throws, and Error: "case_numerics" (a loop beside a user's
/// programs, which have their own), "case_gen", "case_batch", "case_prompt" (below 1),
/// "case_chunk" (not from 1 to the prompt's length), "case_positions" (more positions than the RoPE
/// tables have). What is wrong with the types of layer programs is thrown as a FindingsError, of
/// the first or of all that is found.
RunPlan make_plan(const Case& c, Findings::Until until = Findings::Until::first);

/// A table's layer, as the prefill of this case or as its decode step, with its arrows.
PartitionedLayer partitioned(const Case& c, const Strategy& strategy, Phase phase);

}  // namespace shardproof
