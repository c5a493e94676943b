#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/runner/report.h"

namespace shardproof::tools {

/// Returns the answer of a case as JSON (docs/json.md, verify).
nlohmann::json case_json(const CaseSource& source, const Case& c, const CaseAnswer& answered);

/// Reports one JSON object (docs/json.md) at the end.
class JsonReport : public Report {
 public:
  explicit JsonReport(CaseSource source);

  std::string begin() override { return ""; }
  std::string answered(const Case& c, const CaseAnswer& answered, const Tally& tally) override;
  std::string end(const Ending& ending) override;
  std::string interrupted(const Ending& so_far, int signal) override;

 private:
  nlohmann::json totals(const Ending& ending);

  CaseSource source_;
  nlohmann::json results_ = nlohmann::json::array();
};

}  // namespace shardproof::tools
