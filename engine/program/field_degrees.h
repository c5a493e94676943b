#pragma once

#include <cstddef>
#include <vector>

#include "engine/field.h"
#include "engine/program/program.h"
#include "engine/sharded.h"

namespace shardproof {

/// The degree of result `r` of an op whose operands are numbers of the field regime, from theirs,
/// in layer `layer` (docs/field.md section 2): a product adds degrees, a sum takes the greater,
/// what a function returns has degree 1, a division by a softmax denominator adds one of its
/// layer's. Operands that are ids or positions have none. `results` are all that the op returns.
FieldDegree field_degree(const Op& op, const std::vector<SharedValue>& operands,
                         const std::vector<Sharded>& results, std::size_t r, int layer);

}  // namespace shardproof
