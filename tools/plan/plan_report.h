#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/cost/plan/plan.h"
#include "engine/cost/plan/volume_comparison.h"

namespace shardproof::tools {

/// Content of the report of `plan`.
struct PlanReport {
  const cost::PlanRequest* request = nullptr;
  const cost::Plan* plan = nullptr;
  std::size_t top = 5;            ///< number of choices shown
  bool left_out = false;          ///< whether omitted choices are shown, too
  std::string layouts_file = {};  ///< file of the user's tables
  /// With volumes=paper: the volumes of strategies by both counts.
  std::vector<cost::VolumeOf> volumes = {};
};

std::string plan_text(const PlanReport& report);
nlohmann::json plan_json(const PlanReport& report);

}  // namespace shardproof::tools
