#pragma once

#include <memory>
#include <vector>

#include "engine/numeric/threads.h"
#include "engine/ops/map_names.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof {

/// The expression of a map with what its words stand for, and how `store` rounds.
struct MapExpression {
  const Expression& expression;
  const MapNames& names;
  NumberFormat act = NumberFormat::f32;
};

/// Computes an expression of ops on single elements, in f64 from operands of f32 or int32, rounded
/// once to f32 (docs/spec-model-text.md, "Numbers"). `operands` are those of the names, in their
/// order; missing letters are repeated.
///
/// In the field regime (`field` is not null) operands are field elements or int32; sums, products
/// and quotients are exact, other functions are random ones, by the names of docs/field.md section
/// 1.3 and those of the ops. Throws Error("field_zero", ...) on a division by a number that has no
/// inverse.
Sharded map_elements(const MapExpression& map, const std::vector<const Sharded*>& operands,
                     const Layout& layout, const Shape& shape, std::shared_ptr<const Field> field,
                     Threads& threads);

/// Returns the value with +0 where the indicator, which has some of its letters, is 0. Partial sums
/// that are in memory are +0 there, and so is what they are the sums of.
Sharded where_present(const Sharded& value, const Sharded& indicator, Threads& threads);

}  // namespace shardproof
