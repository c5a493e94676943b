#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/layouts/around.h"
#include "engine/layouts/partition.h"
#include "engine/run/case.h"
#include "engine/shards/finding.h"
#include "weights/base/error.h"
#include "weights/model/passes.h"

namespace shardproof {

/// What a run does, made once from its case: the passes, and each phase's programs with their
/// torus. The oracle reads its passes; engine, judges, estimates and traces all of it. What says
/// how many rows, positions or tokens there are is the passes: a user may put others in their
/// place, of rows that stand at positions of their own. Tests mutate the programs, too.
struct RunPlan {
  Case given;          ///< what it was made from; of it the run reads model and numerics, and
                       ///< traces and explanations torus and name
  ModelConfig placed;  ///< the model with its dims as chips hold them: what layouts cut, and what
                       ///< is moved; what values mean is the given model's
  Passes passes;
  PhasePrograms prefill, decode;  ///< of a run without decode steps the decode's are the prefill's
  /// Of a layer's caches, after the prefill and on its torus; where they cross, of what arrives on
  /// the decode's torus, and without ops.
  Program hand_over;
  PhasePrograms prefix;  ///< of the passes over prefixes, by the prefill's table; else without ops
  /// Whether prefill and decode are on tori of their own: all caches go from the one to the other
  /// before the hand-over.
  bool crosses = false;
  /// Of a layer's caches of prefixes: after the passes over them, whose torus is the prefill's, and
  /// after the prefill. Without prefixes they have no inputs.
  Program prefix_hand_over, prefix_to_decode;
  /// What each row of the batch draws its tokens by: its line in a file. Without them its number.
  std::vector<std::int64_t> row_ids = {};

  std::int64_t row_id(std::size_t row) const {
    return row_ids.empty() ? static_cast<std::int64_t>(row) : row_ids.at(row);
  }

  /// Of hand_over and prefix_to_decode.
  const Torus& hand_over_torus() const { return crosses ? decode.torus : prefill.torus; }

  const PhasePrograms& programs(Phase phase) const {
    if (phase == Phase::prefix) return prefix;
    return phase == Phase::prefill ? prefill : decode;
  }
};

/// Throws what validate(ModelConfig), validate(Numerics), require_legal, require_decodes and
/// require_lengths throw for either phase (for a layer program, what require_layer and check()
/// throw), what partition() throws, and Error: "case_numerics" (a loop beside a user's
/// programs, which have their own), "case_gen", "case_batch", "case_prompt" (below 1),
/// "case_pad" (what require_padding says), "case_chunk" (not from 1 to the prompt's length),
/// "case_split" (a torus of the decode's own without decode steps),
/// "case_sampling" (numbers of sampling that are out of range, or beside greedy; random with
/// regime=field), "case_prefix" (what require_prefix says; a layer program, which has one cache),
/// "case_positions" (more positions than the RoPE tables have). What is wrong with
/// the types of layer programs is thrown as a FindingsError, of the first or of all that is found.
RunPlan make_plan(const Case& c, Findings::Until until = Findings::Until::first);

/// A table's layer, as the prefill of this case, as its decode step or over its prefixes, with its
/// arrows.
PartitionedLayer partitioned(const Case& c, const Strategy& strategy, Phase phase);

}  // namespace shardproof
