#pragma once

#include "engine/run/plan.h"
#include "golden/verify/verify.h"
#include "weights/base/error.h"

namespace shardproof {

/// Runs the plan in the field regime, whatever the case's is, and compares every value with the
/// unsharded model's; besides, one lookup of every id of the vocabulary. An element without an
/// inverse makes it draw once again; the second is a finding. The verdict is of this regime alone.
/// acc, wire and schedule of the case are about sums of floats and have no effect. `bits` and
/// `lanes` of `setting` are for tests of the bound; its seed is not used, but that of the options
/// or the case's.
Judgement judge_in_field(const RunPlan& plan, OracleMemo& memo, const VerifyOptions& options,
                         FieldSetting setting = {});

}  // namespace shardproof
