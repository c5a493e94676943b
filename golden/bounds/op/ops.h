#pragma once

#include <optional>
#include <vector>

#include "golden/bounds/op/sums.h"
#include "golden/scalar/ops.h"
#include "weights/base/error.h"

namespace shardproof::bounds {

/// What a result of an op must be: the very bits, of ops that move, choose or round, else
/// intervals.
struct Allowed {
  std::optional<scalar::Value> bits;
  Bounds bounds;
};

/// What result number `result` of an op must be, in the f32 regime, by the op's own operands as the
/// run had them. `results` are those of the same op before it. Throws what scalar::apply throws.
Allowed allowed(const Op& op, std::size_t result, const std::vector<const scalar::Value*>& args,
                const std::vector<const scalar::Value*>& results, const scalar::Setting& setting);

}  // namespace shardproof::bounds
