#pragma once

#include "golden/trace/pair/pair.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// Fills in the rows of a pair whose traces are judged, in the order of A's run, and what follows
/// from them. Holds the numbers of one value of each trace at a time. Throws what places_of throws.
void pair_values(Pair& pair, const Dump& a, const Dump& b);

}  // namespace shardproof::dump
