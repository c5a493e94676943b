#pragma once

#include <string>
#include <vector>

#include "golden/trace/value/held.h"

namespace shardproof::candidate {

/// What no value of this run could have shown, however it is judged: faults that its weights, ids,
/// passes, model and torus hide. One line each: "biases are zero (layer0.bq): whether they are
/// added, and how often, does not show". Empty where there is nothing. `weights` as stored for the
/// run.
std::vector<std::string> not_shown(const Claim& claim, const Values& values,
                                   const Weights& weights);

}  // namespace shardproof::candidate
