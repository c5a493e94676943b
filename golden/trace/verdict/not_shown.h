#pragma once

#include <string>
#include <vector>

#include "engine/numeric/threads.h"
#include "golden/trace/value/dumped_value.h"

namespace shardproof::dump {

/// Returns the faults that no value of this run could have shown, however judged, because its
/// weights, ids, passes, model or torus hide them. One line each: "biases are zero (layer0.bq):
/// whether they are added, and how often, does not show". `weights` as stored for the run.
std::vector<std::string> not_shown(const Claim& claim, const Values& values, const Weights& weights,
                                   Threads& threads);

}  // namespace shardproof::dump
