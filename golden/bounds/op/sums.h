#pragma once

#include <vector>

#include "golden/bounds/number/interval.h"
#include "golden/scalar/ops.h"
#include "weights/base/error.h"

namespace shardproof::bounds {

/// Intervals of a value's elements, in the parts of scalar::Value.
struct Bounds {
  std::vector<std::vector<Interval>> parts;
  NumberFormat format = NumberFormat::f32;
  Kind kind = Kind::running;
};

/// Bounds of an einsum or a reduction of the f32 regime, given its operands: the running bound over
/// the declared order (docs/numerics.md section 10.2). Throws Error("scalar_c2", ...) if no order
/// is defined.
Bounds bounds_of_contraction(const Op& op, const std::vector<const scalar::Value*>& args,
                             const scalar::Setting& setting);
Bounds bounds_of_reduction(const Op& op, const scalar::Value& t, const scalar::Setting& setting);

}  // namespace shardproof::bounds
