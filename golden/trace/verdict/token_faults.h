#pragma once

#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/reference/reference.h"
#include "golden/trace/value/dumped_value.h"

namespace shardproof::dump {

/// Returns the faults of greedy sampling that explain every token of the trace, right and wrong
/// ones: choices from the logits of one shard, indices within a shard taken for ids, choices from
/// other rows or passes. A fault is an explanation only if so many wrong tokens were met by chance,
/// each once in V, in fewer than one in ten traces, however many faults are tried. `values`,
/// `claim` and `reference` are those of the verdict; `without` is a kind that is not tried.
std::vector<diagnosis::Hypothesis> token_faults(const Values& values, const Claim& claim,
                                                Reference& reference,
                                                std::string_view without = "");

}  // namespace shardproof::dump
