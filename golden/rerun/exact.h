#pragma once

#include "golden/rerun/distances.h"
#include "oracle/model/oracle.h"

namespace shardproof::rerun {

/// The exact regime's values of the runnable passes over these ids, whatever tokens follow from its
/// own logits: the decode reads them as a prompt. Without tokens of random sampling. Throws what
/// oracle::run_stored throws.
oracle::Answer exact_of(const Question& question, const Numerics& numerics, int threads);

}  // namespace shardproof::rerun
