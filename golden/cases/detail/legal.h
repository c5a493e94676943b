#pragma once

#include <cstdint>
#include <optional>

#include "engine/run/plan.h"

namespace shardproof::cases {

/// Returns the number that a dim must be a multiple of for both phases.
std::int64_t unit(const Case& c, char dim);

/// Returns the case's plan if the case is legal.
std::optional<RunPlan> plan_if_legal(const Case& c);

}  // namespace shardproof::cases
