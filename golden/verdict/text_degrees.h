#pragma once

#include "engine/shards/field.h"
#include "weights/model/numerics.h"
#include "weights/model/passes.h"
#include "weights/text/text_model.h"

namespace shardproof {

/// Returns what the unsharded run of a text's model counts in the field regime (docs/field.md
/// section 2.2): the degrees of its values and of the arguments of functions, the applications of
/// each function, the divisors; from the form of its lines and the shapes of the passes alone.
FieldCounts counts_of_text(const TextModel& model, NumberFormat act, const Passes& passes);

}  // namespace shardproof
