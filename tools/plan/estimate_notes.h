#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/cost/plan/plan.h"

namespace shardproof::tools {

/// Notes on the storage type of embedding and unembedding, one line for each type of weights that
/// does not imply it.
std::string embedding_notes(const cost::PlanRequest& request);
/// Notes on a plan's estimates, one per line: that they are for another chip than the constants
/// were fitted on, or for other volumes; then embedding_notes. May be empty.
std::string estimate_notes(const cost::PlanRequest& request);
/// Adds the type of embedding and unembedding for each type of weights, as member `embeddings`.
void add_embedding_types(const cost::PlanRequest& request, nlohmann::json& out);
/// Adds the embedding types, and the other notes as members `guess` and `comparison`.
void add_estimate_notes(const cost::PlanRequest& request, nlohmann::json& out);

}  // namespace shardproof::tools
