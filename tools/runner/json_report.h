#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/runner/report.h"

namespace shardproof::tools {

/// Reports one JSON object (docs/json.md) at the end.
class JsonReport : public Report {
 public:
  explicit JsonReport(CaseSource source);

  std::string begin() override { return ""; }
  std::string answered(const Case& c, const CaseAnswer& answered, const Tally& tally) override;
  std::string end(const Ending& ending) override;
  std::string interrupted(const Ending& so_far, int signal) override;

 private:
  nlohmann::json as_json(const Case& c, const CaseAnswer& answered) const;
  nlohmann::json totals(const Ending& ending);

  CaseSource source_;
  nlohmann::json results_ = nlohmann::json::array();
};

}  // namespace shardproof::tools
