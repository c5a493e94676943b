#pragma once

#include "golden/faults/operator.h"

namespace shardproof::faults {

enum class Before { pass, layer };

/// What the same step returned before stands in place of its result, on all chips, or in the first
/// half of what the last chip has. Where it never ran before, the result is right.
ResultEdit stale(Before before, bool half_of_one_chip);

}  // namespace shardproof::faults
