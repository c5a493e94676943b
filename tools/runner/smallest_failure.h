#pragma once

#include "tools/runner/case_source.h"
#include "tools/runner/tally.h"

namespace shardproof::tools {

/// The simplest case found that fails as this one does (golden/cases/cases.h shrinks it). `source`
/// names what runs, should it crash.
Case smallest_failure(const Tally::Failure& failure, const CaseSource& source);

}  // namespace shardproof::tools
