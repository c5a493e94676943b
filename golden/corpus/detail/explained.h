#pragma once

#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/read/dump.h"
#include "golden/trace/value/dumped_value.h"

namespace shardproof::corpus {

/// Returns hypotheses under which every chip would hold exactly these bits instead of the golden's:
/// another layout of the same tensor; a reduction over other axes or none, or with a partial sum
/// missing or counted twice; otherwise the unchanged operand. Empty if none fits.
std::vector<diagnosis::Hypothesis> explained(const dump::Dump& golden,
                                             const dump::DumpedValue& dumped);

}  // namespace shardproof::corpus
