#pragma once

#include "golden/trace/read/dump.h"
#include "golden/trace/verdict/verdict.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// Judges a trace of the field regime, as our own runs write it: each value must have the numbers
/// of the unsharded model, on every chip. Adds to `values` what each row is of. Throws Error:
/// "compare_case" (no trace of the field regime names the setting of its numbers), "dump_attribute"
/// (a meaningless one), "dump_layout", and what make_plan and OracleMemo::of_field throw.
Verdict judge_in_field(const dump::Dump& dump, const Claim& claim, Values& values);

}  // namespace shardproof::dump
