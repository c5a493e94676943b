#pragma once

#include <cstddef>
#include <vector>

#include "engine/numeric/threads.h"
#include "engine/program/program.h"
#include "engine/shards/field.h"
#include "engine/shards/sharded.h"

namespace shardproof {

/// The degree of result `r` of an op in layer `layer`, from the degrees of its operands, which are
/// numbers of the field regime (docs/field.md section 2): a product adds degrees, a sum takes the
/// greater, a function's result has degree 1, a division by a softmax denominator adds one of its
/// layer's. Operands that are ids or positions have none. `results` are all results of the op.
FieldDegree field_degree(const Op& op, const std::vector<SharedValue>& operands,
                         const std::vector<Sharded>& results, std::size_t r, int layer);

/// Sets the degrees of a step's results and reports to their field the degrees met and the softmax
/// denominators inverted. `V` is the model's. Does nothing for values outside the field regime.
void count_field(const Op& op, const std::vector<SharedValue>& operands,
                 std::vector<Sharded>& results, int layer, std::int64_t V);

/// Converts operands of a sort that the op does not take to numbers (docs/field.md section 1.4).
/// Moves and reductions take every sort.
void operands_of_sort(const Op& op, std::vector<SharedValue>& operands, Threads& threads);

}  // namespace shardproof
