#pragma once

#include "golden/trace/value/dumped_value.h"

namespace shardproof::dump {

/// Restricts the wire roundings that a trace declares as a whole to values with partial sums on
/// chips: products whose declared operands, or which themselves, are cut or partial along the
/// contracted dims. Removes them from all other values, unless these declare their own number. A
/// product keeps them if the layouts of its operands are unknown.
void leave_out_wire(Values& values, const Claim& claim);

}  // namespace shardproof::dump
