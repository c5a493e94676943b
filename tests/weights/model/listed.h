#pragma once

#include <cstdint>
#include <vector>

#include "weights/model/passes.h"

namespace shardproof {

/// Returns all passes of a run in their order.
inline std::vector<PassPlan> listed(const Passes& passes) {
  std::vector<PassPlan> list;
  for (std::int64_t i = 0; i < passes.size(); ++i) list.push_back(passes.at(i));
  return list;
}

}  // namespace shardproof
