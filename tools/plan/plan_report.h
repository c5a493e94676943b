#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/cost/plan/plan.h"
#include "engine/cost/plan/volume_comparison.h"

namespace shardproof::tools {

/// What `plan` prints.
struct PlanReport {
  const cost::PlanRequest* request = nullptr;
  const cost::Plan* plan = nullptr;
  std::size_t top = 5;            ///< choices that are shown
  bool left_out = false;          ///< and what was left out
  std::string layouts_file = {};  ///< of the user's own tables
  /// With volumes=paper: what strategies send by either count.
  std::vector<cost::VolumeOf> volumes = {};
};

std::string plan_text(const PlanReport& report);
nlohmann::json plan_json(const PlanReport& report);

}  // namespace shardproof::tools
