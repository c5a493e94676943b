#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/cost/plan/frontier.h"

namespace shardproof::tools {

/// Content of the report of `plan --pareto`: for each phase the fastest choice of every number of
/// chips, batch and weight type, and which of them are on the cost/latency frontier.
struct FrontierReport {
  struct Phase {
    bool prefills;
    std::vector<const cost::Choice*> points;
  };
  const cost::PlanRequest* request = nullptr;
  std::vector<Phase> phases;
  std::string csv;          ///< name of the output file
  double parameters = 0.0;  ///< N
};

std::string frontier_csv(const FrontierReport& report);
std::string frontier_text(const FrontierReport& report);
nlohmann::json frontier_json(const FrontierReport& report);

}  // namespace shardproof::tools
