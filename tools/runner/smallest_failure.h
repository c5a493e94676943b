#pragma once

#include "tools/runner/case_source.h"
#include "tools/runner/tally.h"

namespace shardproof::tools {

/// Returns the simplest case found that fails in the same way (golden/cases/cases.h shrinks it).
/// `source` names what is running in case of a crash.
Case smallest_failure(const Tally::Failure& failure, const CaseSource& source);

}  // namespace shardproof::tools
