#pragma once

#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/read/dump.h"
#include "golden/trace/value/held.h"

namespace shardproof::corpus {

/// What would make every chip hold just these bits in place of a golden's: another layout of the
/// same tensor; a reduction over other axes or none, with a summand missing or counted twice; else
/// the operand as it was. Nothing, if none of them does.
std::vector<diagnosis::Hypothesis> explained(const dump::Dump& golden, const candidate::Held& held);

}  // namespace shardproof::corpus
