#pragma once

#include "golden/trace/value/held.h"

namespace shardproof::candidate {

/// The roundings of partial sums that a trace declares as a whole count where chips have partial
/// sums: of a product whose declared operands, or the value itself, are cut or partial along what
/// it sums over. All other values are declared without them, unless they say how many
/// themselves. A product of whose operands no layout is known keeps them.
void leave_out_wire(Values& values, const Claim& claim);

}  // namespace shardproof::candidate
