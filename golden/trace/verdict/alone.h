#pragma once

#include <vector>

#include "golden/trace/claim/claim.h"
#include "golden/trace/reference/reference.h"
#include "golden/trace/verdict/row.h"

namespace shardproof::candidate {

/// Of values whose bound would take anything, as the trace lacks what they are made of (logits or
/// outputs alone): the run is made again in the trace's arithmetic, and their drift stands beside
/// the runs' (docs/bounds.md). As far as the furthest run or less: near. Beyond 10 times their root
/// mean square: unlikely. Between these a row stays what it is. Rows are of `values`, judged, with
/// their drift.
void weigh_alone(const Values& values, const Claim& claim, Reference& reference,
                 std::vector<Row>& rows);

}  // namespace shardproof::candidate
