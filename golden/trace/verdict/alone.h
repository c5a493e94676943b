#pragma once

#include <vector>

#include "golden/trace/claim/claim.h"
#include "golden/trace/reference/reference.h"
#include "golden/trace/verdict/row.h"

namespace shardproof::dump {

/// Weighs values whose bound would accept anything because the trace lacks their operands (only
/// logits or outputs): the run is repeated in the trace's arithmetic, and the drift of a value is
/// compared with those of the repeated runs (docs/bounds.md section 8). Up to the largest of them:
/// near. Beyond 10 times their root mean square: unlikely. Between these the row is left as it is.
/// Rows are of `values`, judged, and get their drift.
void weigh_alone(const Values& values, const Claim& claim, Reference& reference,
                 std::vector<Row>& rows);

}  // namespace shardproof::dump
