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

/// The plan of a run, built once from its case: the passes, and each phase's programs with their
/// torus. The oracle reads its passes; engine, judges, estimates and traces read all of it. The
/// numbers of rows, positions and tokens are those of the passes: a user may replace them by
/// others, with rows at positions of their own. Tests also mutate the programs.
struct RunPlan {
  Case source_case;    ///< the run reads its model and numerics; traces and explanations its torus
                       ///< and name
  ModelConfig placed;  ///< the model with its dims as chips hold them: determines layouts and
                       ///< traffic; values mean what the source case's model says
  Passes passes;
  PhasePrograms prefill, decode;  ///< without decode steps, decode equals prefill
  /// Moves a layer's caches after the prefill, on its torus. If caches cross, it takes what arrives
  /// on the decode's torus and has no ops.
  Program hand_over;
  std::vector<Program> other_hand_overs = {};  ///< of other_layers, if the model is a text
  PhasePrograms prefix;  ///< the passes over prefixes, by the prefill's table; otherwise empty
  /// True if prefill and decode are on tori of their own: all caches cross before the hand-over.
  bool crosses = false;
  /// Move a layer's caches of prefixes: after the passes over them, on the prefill's torus, and
  /// after the prefill. Without prefixes they have no inputs.
  Program prefix_hand_over, prefix_to_decode;
  /// Those of the other layers of the prefill, and of the decode, if the model is a text.
  std::vector<Program> other_prefix_hand_overs = {}, other_prefixes_to_decode = {};
  /// The id by which each row of the batch draws its tokens: its line in a file. If empty, the
  /// row's index.
  std::vector<std::int64_t> row_ids = {};

  std::int64_t row_id(std::size_t row) const {
    return row_ids.empty() ? static_cast<std::int64_t>(row) : row_ids.at(row);
  }

  /// The torus of hand_over and prefix_to_decode.
  const Torus& hand_over_torus() const { return crosses ? decode.torus : prefill.torus; }

  /// Return the hand-over of a layer's caches, and those of the caches of its prefixes.
  const Program& hand_over_program(std::int64_t layer) const {
    return of_layer(decode, layer, hand_over, other_hand_overs);
  }
  const Program& prefix_hand_over_program(std::int64_t layer) const {
    return of_layer(prefill, layer, prefix_hand_over, other_prefix_hand_overs);
  }
  const Program& prefix_to_decode_program(std::int64_t layer) const {
    return of_layer(decode, layer, prefix_to_decode, other_prefixes_to_decode);
  }

  const PhasePrograms& programs(Phase phase) const {
    if (phase == Phase::prefix) return prefix;
    return phase == Phase::prefill ? prefill : decode;
  }

 private:
  static const Program& of_layer(const PhasePrograms& phase, std::int64_t layer,
                                 const Program& first, const std::vector<Program>& others) {
    if (others.empty()) return first;
    const std::size_t n = phase.layer_programs.at(static_cast<std::size_t>(layer));
    return n == 0 ? first : others.at(n - 1);
  }
};

/// Builds the plan of a case. Throws what validate(ModelConfig), validate(Numerics), require_legal,
/// require_decodes and require_lengths throw for either phase (for a layer program, what
/// require_layer and check() throw), what partition() throws, and Error: "case_numerics" (a loop
/// beside a user's programs, which have their own), "case_gen", "case_batch", "case_prompt" (below
/// 1), "case_pad" (what require_padding says), "case_chunk" (not from 1 to the prompt's length),
/// "case_split" (a torus of the decode's own without decode steps), "case_sampling" (numbers of
/// sampling that are out of range, or beside greedy; random with regime=field), "case_prefix" (what
/// require_prefix says; a layer program, which has one cache), "case_model" (a key that is not for
/// a model's text), "case_positions" (more positions than the RoPE tables have). Type errors of
/// layer programs are thrown as a FindingsError: the first, or all, as `until` says.
RunPlan make_plan(const Case& c, Findings::Until until = Findings::Until::first);

/// The layer of a table, with its arrows, as this case's prefill, decode step or pass over
/// prefixes.
PartitionedLayer partitioned(const Case& c, const Strategy& strategy, Phase phase);

}  // namespace shardproof
