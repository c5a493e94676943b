#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/plan/capacity.h"

namespace shardproof::tools {

/// What `plan --capacity` prints.
struct CapacityReport {
  const cost::PlanRequest* request = nullptr;
  std::vector<cost::Capacity> found;
  std::optional<double> share;  ///< of a chip's memory that caches have
  std::size_t top = 5;          ///< of each batch
};

std::string capacity_text(const CapacityReport& report);
nlohmann::json capacity_json(const CapacityReport& report);

}  // namespace shardproof::tools
