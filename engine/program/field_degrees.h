#pragma once

#include <cstddef>
#include <vector>

#include "engine/numeric/threads.h"
#include "engine/program/program.h"
#include "engine/shards/field.h"
#include "engine/shards/sharded.h"

namespace shardproof {

/// The degree of result `r` of an op whose operands are numbers of the field regime, from theirs,
/// in layer `layer` (docs/field.md section 2): a product adds degrees, a sum takes the greater,
/// what a function returns has degree 1, a division by a softmax denominator adds one of its
/// layer's. Operands that are ids or positions have none. `results` are all that the op returns.
FieldDegree field_degree(const Op& op, const std::vector<SharedValue>& operands,
                         const std::vector<Sharded>& results, std::size_t r, int layer);

/// Gives the results of a step their degrees, and tells their field what it computed: the degrees
/// that it met, and the softmax denominators that it inverted. `V` of the model. Of values that are
/// no numbers of a field it does nothing.
void count_field(const Op& op, const std::vector<SharedValue>& operands,
                 std::vector<Sharded>& results, int layer, std::int64_t V);

/// Operands of another sort than the op is about become numbers (docs/field.md section 1.4). Moves
/// and reductions take every sort.
void operands_of_sort(const Op& op, std::vector<SharedValue>& operands, Threads& threads);

}  // namespace shardproof
