#include "golden/cases/detail/legal.h"

#include <numeric>

#include "weights/base/error.h"

namespace shardproof::cases {

std::int64_t unit(const Case& c, char dim) {
  std::int64_t unit = 1;
  for (const Strategy* phase : {&c.prefill, &c.decode})
    for (const ShardedDim& one : sharded_dims(*phase))
      if (one.dim == dim) unit = std::lcm(unit, std::int64_t{c.torus.size(one.axes)});
  return unit;
}

std::optional<RunPlan> plan_if_legal(const Case& c) {
  try {
    return make_plan(c);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace shardproof::cases
