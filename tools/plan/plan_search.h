#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/cost/plan/plan.h"
#include "engine/cost/search/table_search.h"

namespace shardproof::tools {

/// What `plan --search` finds for one phase of a choice: the best of all tables over its torus.
struct PhaseSearch {
  std::string phase;          ///< "prefill", "decode"
  cost::Candidate candidate;  ///< the phase under a table that ships or a user's, with its pass
  cost::SearchResult found;   ///< its table is named after the phase
};

/// Searches a table for each phase of the choice, for its pass as it is, by the estimate. Throws
/// what cost::search_tables throws.
std::vector<PhaseSearch> search_choice(const cost::Choice& choice, const cost::Chip& chip);

/// The tables as a file of layouts has them.
std::string searched_layouts(const std::vector<PhaseSearch>& phases);
/// What is printed behind the plan. `file` is where the tables were written; empty if nowhere.
std::string search_text(const std::vector<PhaseSearch>& phases, const cost::Choice& choice,
                        const ModelConfig& model, const std::string& file);
nlohmann::json search_json(const std::vector<PhaseSearch>& phases, const cost::Choice& choice,
                           const ModelConfig& model, const std::string& file);

}  // namespace shardproof::tools
