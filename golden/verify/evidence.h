#pragma once

#include <string>
#include <vector>

#include "engine/run/plan.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// What a run cannot prove, however equal it is: the judge compares values, and these values or
/// passes would be the same if the layout were wrong.
struct Evidence {
  std::string missing;             ///< why the case is not judged; empty if nothing is missing
  std::vector<std::string> notes;  ///< what else it leaves unproved
  std::vector<std::string> noted;  ///< the weights that the notes are about
};

/// Looks for weights that a layout shards into blocks which all hold the same bits: a chip with
/// another chip's block would compute the same. Where that is a W matrix or a table, it is missing;
/// of gains and biases it is a note. `weights` as stored for the run.
Evidence evidence_of_weights(const RunPlan& plan, const Weights& weights);

/// What the passes of a run leave unproved though it is equal: of a run without decode steps the
/// decode, of a user's layer that is the prefill alone the reading of a filled cache, of a case
/// with lengths that leave no row shorter the padding, of one with loops of which none is a ring of
/// several chips the loops.
std::vector<std::string> notes_of_passes(const RunPlan& plan);

/// A user's layer is proved as decode only by a pass that reads a filled cache at positions above
/// 0: "not judged as decode: ..." if this run has none, else empty.
std::string missing_of_decode(const RunPlan& plan);

}  // namespace shardproof
