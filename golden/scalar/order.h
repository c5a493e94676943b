#pragma once

#include <vector>

#include "golden/scalar/ops.h"

namespace shardproof::scalar {

// The two places where the f32 regime has an order (docs/spec.md section 1.2).

/// einsum: for every element, and every place on the result's partial axes, one chain of fma from
/// +0 over the block of the contracted dims that a chip at that place owns.
Value contraction(const Op& op, const std::vector<const Value*>& args, const Setting& setting);

/// reduce_scatter and all_reduce: the partial sums added in the order of the schedule.
Value reduction(const Op& op, const Value& t, const Setting& setting);

}  // namespace shardproof::scalar
