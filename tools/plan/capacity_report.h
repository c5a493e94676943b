#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/plan/capacity.h"

namespace shardproof::tools {

/// Content of the report of `plan --capacity`.
struct CapacityReport {
  const cost::PlanRequest* request = nullptr;
  std::vector<cost::Capacity> found;
  std::optional<double> share;  ///< share of a chip's memory for caches
  std::size_t top = 5;          ///< results shown per batch
};

std::string capacity_text(const CapacityReport& report);
nlohmann::json capacity_json(const CapacityReport& report);

}  // namespace shardproof::tools
