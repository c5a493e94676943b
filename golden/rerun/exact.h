#pragma once

#include "golden/rerun/distances.h"
#include "oracle/model/oracle.h"

namespace shardproof::rerun {

/// Returns the exact regime's values of the runnable passes over the given ids, whatever tokens its
/// own logits would give: the decode reads them as a prompt. Random sampling is left out. Throws
/// what oracle::run_stored throws.
oracle::Answer exact_of(const Question& question, const Numerics& numerics, int threads);

}  // namespace shardproof::rerun
