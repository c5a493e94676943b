#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/cost/plan/plan.h"
#include "engine/cost/search/table_search.h"

namespace shardproof::tools {

/// Result of `plan --search` for one phase of a choice: the best of all tables on its torus.
struct PhaseSearch {
  std::string phase;          ///< "prefill", "decode"
  cost::Candidate candidate;  ///< the phase under a shipped or user table, with its pass
  cost::SearchResult found;   ///< its table is named after the phase
};

/// Searches the table with the best estimate for each phase of the choice, for its pass. Throws
/// what cost::search_tables throws.
std::vector<PhaseSearch> search_choice(const cost::Choice& choice, const cost::Chip& chip);

/// Prints the tables as a layouts file.
std::string searched_layouts(const std::vector<PhaseSearch>& phases);
/// Prints the part of the report that follows the plan. `file` is where the tables were written;
/// may be empty.
std::string search_text(const std::vector<PhaseSearch>& phases, const cost::Choice& choice,
                        const ModelConfig& model, const std::string& file);
nlohmann::json search_json(const std::vector<PhaseSearch>& phases, const cost::Choice& choice,
                           const ModelConfig& model, const std::string& file);

}  // namespace shardproof::tools
