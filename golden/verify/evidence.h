#pragma once

#include <string>
#include <vector>

#include "engine/run/plan.h"
#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Gaps in what an equal run proves: the judge compares values, and these values or passes would be
/// the same if the layout were wrong.
struct Evidence {
  std::string missing;             ///< why the case is not judged; empty if it is
  std::vector<std::string> notes;  ///< further gaps
  std::vector<std::string> noted;  ///< the weights that the notes are about
};

/// Looks for weights that a layout shards into blocks with identical bits: a chip that holds
/// another chip's block would compute the same. For a W matrix or a table that is reported as
/// missing evidence, for gains and biases as a note. `weights` as stored for the run.
Evidence evidence_of_weights(const RunPlan& plan, const Weights& weights);

/// Returns notes on what the passes of an equal run leave unproved: the decode, if there are no
/// decode steps; the reading of a filled cache, if a user's layer is the prefill alone; the
/// padding, if the case has lengths but no shorter row; the loops, if none is a ring of several
/// chips.
std::vector<std::string> notes_of_passes(const RunPlan& plan);

/// A user's layer is proved as decode only by a pass that reads a filled cache at positions above
/// 0: returns "not judged as decode: ..." if this run has none, otherwise "".
std::string missing_of_decode(const RunPlan& plan);

}  // namespace shardproof
