#pragma once

#include <vector>

#include "golden/scalar/ops.h"

namespace shardproof::scalar {

/// Returns the results of an op of sampling, greedy or random, which are the same in every regime:
/// on whole rows, with thresholds found as the oracle finds them.
std::vector<Value> sampling(const Op& op, const std::vector<const Value*>& args,
                            const Setting& setting);

}  // namespace shardproof::scalar
