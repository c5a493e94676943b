#pragma once

#include <string>
#include <vector>

#include "golden/trace/verdict/verdict.h"

namespace shardproof::dump {

/// Returns notes for the reader of a verdict, one sentence each: how a value was read if the trace
/// does not say; f64 numbers not representable in f32; an invalid token; ids that the trace seems
/// to lack; a transposed weight.
std::vector<std::string> notes_of(const Values& values, const Claim& claim, Reference& reference,
                                  const Verdict& verdict);

/// Returns "is a padding id: the vocabulary has 264", or else "is not a token id".
std::string what_no_id_is(double number, std::int64_t V);

}  // namespace shardproof::dump
