#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/numeric/threads.h"
#include "engine/program/program.h"
#include "engine/shards/field.h"
#include "engine/shards/sharded.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// Where a step is run, and what else its degrees depend on.
struct FieldScope {
  int layer = 0;
  std::int64_t V = 0;                    ///< the model's
  std::string step = {};                 ///< "layer3.attn": the same in every pass
  NumberFormat act = NumberFormat::f32;  ///< whether a map's store is a function
};

/// The degree of a product, or of a sum, of elements of these degrees.
FieldDegree product_degree(FieldDegree a, const FieldDegree& b);
FieldDegree greater_degree(FieldDegree a, const FieldDegree& b);

/// The degree of result `r` of an op in layer `layer`, from the degrees of its operands, which are
/// numbers of the field regime (docs/field.md section 2): a product adds degrees, a sum takes the
/// greater, a function's result has degree 1, a division by a softmax denominator adds one of its
/// layer's. Operands that are ids or positions have none. `results` are all results of the op.
FieldDegree field_degree(const Op& op, const std::vector<SharedValue>& operands,
                         const std::vector<Sharded>& results, std::size_t r, int layer);

/// The degree of a map's result. Reports to the field the degrees of its functions' arguments and
/// its divisors: x/y of degrees (a, e, more) and (a', e', more') has the degree (a, e + 1 for this
/// division, more + e'), and the divisor's numerator that of y.
FieldDegree field_degree_of_map(const Op& op, const std::vector<SharedValue>& operands,
                                const Field& field, const FieldScope& scope);

/// Sets the degrees of a step's results and reports to their field the degrees met and what was
/// inverted. Does nothing for values outside the field regime.
void count_field(const Op& op, const std::vector<SharedValue>& operands,
                 std::vector<Sharded>& results, const FieldScope& scope);

/// Converts operands of a sort that the op does not take to numbers (docs/field.md section 1.4).
/// Moves and reductions take every sort.
void operands_of_sort(const Op& op, std::vector<SharedValue>& operands, Threads& threads);

}  // namespace shardproof
