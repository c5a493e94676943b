#pragma once

#include <vector>

#include "golden/scalar/ops.h"

namespace shardproof::scalar {

/// The results of an op of random sampling, whose numbers are those of every regime: on whole rows,
/// by the oracle's way of finding thresholds.
std::vector<Value> sampling(const Op& op, const std::vector<const Value*>& args,
                            const Setting& setting);

}  // namespace shardproof::scalar
