#pragma once

#include <string>
#include <vector>

#include "golden/trace/pair/pair.h"

namespace shardproof::dump {

/// Returns whether both have the same numbers in every tensor.
bool same_weights(const Weights& a, const Weights& b);

/// Returns what two runs have otherwise, besides tokens: weights, numbers, sampling and, if they
/// are to be the same, passes. Prompts are compared token by token (Tokens).
std::vector<Difference> differences_of(const JudgedTrace& a, const JudgedTrace& b, bool passes);

}  // namespace shardproof::dump
