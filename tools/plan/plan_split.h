#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/cost/plan/plan.h"
#include "engine/cost/plan/split.h"

namespace shardproof::tools {

/// What `plan --split` chooses: a slice for the prefill of one request at a time, one for decode
/// steps of many, and what they reach together (docs/split.md).
struct SplitPlan {
  cost::Choice prefill, decode;
  cost::Split split;
  cost::SplitGoal goal;
  double cache_bytes = 0.0;  ///< of one request, as they cross
};

/// Of the tori of the request, in each phase the fastest choice on each torus with each type of
/// weights, of decode steps for each number of rows; among these the two slices of fewest chips
/// that meet the goal. Both phases keep their weights alike. `goal` lacks its context and steps,
/// which are the request's prompt and gen. Throws what require_choice and plan_split throw.
SplitPlan plan_two_slices(const cost::PlanRequest& request, cost::SplitGoal goal);

std::string split_text(const SplitPlan& plan, const cost::PlanRequest& request,
                       const std::string& layouts_file);
nlohmann::json split_json(const SplitPlan& plan, const cost::PlanRequest& request,
                          const std::string& layouts_file);

}  // namespace shardproof::tools
