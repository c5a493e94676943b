#pragma once

#include <vector>

#include "golden/scalar/ops.h"
#include "weights/base/error.h"

namespace shardproof::scalar {

// The steps of model texts on whole tensors, element by element (docs/spec-model-text.md).

/// map: the expression, in f64, rounded once; +0 where the indicator is 0.
Value mapped(const Op& op, const std::vector<const Value*>& args, const Setting& setting);
/// max, mean, stored_sum; of sharded letters a maximum for each place, -inf that of nothing. Throws
/// Error("max_empty", ...) and Error("mean_empty", ...).
Value locally_reduced(const Op& op, const std::vector<const Value*>& args, const Setting& setting);
/// all_reduce by max. Throws Error("max_empty", ...).
Value largest_part(const Op& op, const Value& t, const Setting& setting);
/// top.
Value top_marked(const Op& op, const std::vector<const Value*>& args);
/// A sum as a contraction of its operand with ones.
struct SumAsProduct {
  Op op;
  Value ones;

  SumAsProduct(const Op& sum, const Value& x);
};
Value sum_over(const Op& op, const Value& x, const Setting& setting);
Value turned(const Op& op, const std::vector<const Value*>& args);
/// gather. Throws Error("gather_range", ...).
Value gathered(const Op& op, const Value& index, const Value& table);
/// with_prefix.
Value behind_prefix(const Op& op, const Value& prefixes, const Value& cache);
/// append. Throws Error("append_range", ...).
Value appended(const Op& op, const std::vector<const Value*>& args, const Setting& setting);
/// The value, with the letters of the op's result, with +0 where one of the op's indicators is 0.
Value where_present(const Op& op, Value value, const std::vector<const Value*>& args);

}  // namespace shardproof::scalar
