#pragma once

#include <optional>
#include <vector>

#include "golden/bounds/op/sums.h"
#include "golden/scalar/ops.h"
#include "weights/base/error.h"

namespace shardproof::bounds {

/// Allowed results of an op: exact bits for ops that move, choose or round, otherwise intervals.
struct Allowed {
  std::optional<scalar::Value> bits;
  Bounds bounds;
};

/// Returns what result number `result` of an op may be in the f32 regime, given the op's operands
/// as the run had them. `results` are the preceding results of the same op. Throws what
/// scalar::apply throws.
Allowed allowed(const Op& op, std::size_t result, const std::vector<const scalar::Value*>& args,
                const std::vector<const scalar::Value*>& results, const scalar::Setting& setting);

}  // namespace shardproof::bounds
