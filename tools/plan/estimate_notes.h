#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/cost/plan/plan.h"

namespace shardproof::tools {

/// What embedding and unembedding are kept as, a line for each type of weights that does not say
/// so.
std::string embedding_notes(const cost::PlanRequest& request);
/// What to know of the estimates of a plan, a line each: that they are of another chip than the
/// constants, or of other volumes. Then embedding_notes. Nothing where none is so.
std::string estimate_notes(const cost::PlanRequest& request);
/// The type of both for each type of weights, as the member `embeddings`.
void add_embedding_types(const cost::PlanRequest& request, nlohmann::json& out);
/// That, and the other notes as the members `guess` and `comparison`.
void add_estimate_notes(const cost::PlanRequest& request, nlohmann::json& out);

}  // namespace shardproof::tools
