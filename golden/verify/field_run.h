#pragma once

#include "engine/run/plan.h"
#include "golden/verify/verify.h"
#include "weights/base/error.h"

namespace shardproof {

/// Runs the plan in the field regime, whatever the case's regime is, and compares every value with
/// the unsharded model's, plus one lookup of every id of the vocabulary. If an element has no
/// inverse, the numbers are drawn once again; a second failure is a finding. The verdict covers
/// this regime alone. acc, wire and schedule of the case concern sums of floats and have no effect.
/// `bits` and `lanes` of `setting` are for tests of the bound; its seed is ignored in favour of the
/// options' or the case's.
Judgement judge_in_field(const RunPlan& plan, OracleMemo& memo, const VerifyOptions& options,
                         FieldSetting setting = {});

}  // namespace shardproof
