#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/cost/plan/plan.h"
#include "engine/cost/plan/split.h"

namespace shardproof::tools {

/// Result of `plan --split`: a slice for the prefill of one request at a time, one for decode steps
/// of many, and their joint performance (docs/split.md).
struct SplitPlan {
  cost::Choice prefill, decode;
  cost::Split split;
  cost::SplitGoal goal;
};

/// Chooses the two slices of fewest chips that meet the goal among the fastest choices of each
/// phase, per torus, type of weights and, for decode, number of rows. Both phases use the same type
/// of weights. The function sets `goal`'s context and steps to the request's prompt and gen. Throws
/// what require_choice and plan_split throw.
SplitPlan plan_two_slices(const cost::PlanRequest& request, cost::SplitGoal goal);

std::string split_text(const SplitPlan& plan, const cost::PlanRequest& request,
                       const std::string& layouts_file);
nlohmann::json split_json(const SplitPlan& plan, const cost::PlanRequest& request,
                          const std::string& layouts_file);

}  // namespace shardproof::tools
