#pragma once

#include <string>
#include <vector>

#include "golden/trace/verdict/verdict.h"

namespace shardproof::candidate {

/// What a reader of a verdict should know beside it, one sentence each: how a value was read where
/// the trace does not say it; f64 numbers that are no f32; a token that is none; ids that a trace
/// seems to have forgotten; a weight that is transposed.
std::vector<std::string> notes_of(const Values& values, const Claim& claim, Reference& reference,
                                  const Verdict& verdict);

/// "is a padding id: the vocabulary has 264", or "is no token id" of a number that is none at all.
std::string what_no_id_is(double number, std::int64_t V);

}  // namespace shardproof::candidate
