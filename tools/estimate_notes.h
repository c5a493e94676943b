#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/cost/plan.h"

namespace shardproof::tools {

/// What to know of the estimates of a plan, a line each: that they are of another chip than the
/// constants, or of other volumes. Nothing where neither is so.
std::string estimate_notes(const cost::PlanRequest& request);
/// The same as the members `guess` and `comparison`.
void add_estimate_notes(const cost::PlanRequest& request, nlohmann::json& out);

}  // namespace shardproof::tools
