#pragma once

#include <cstdint>
#include <string>

#include "tools/runner/report.h"

namespace shardproof::tools {

/// Reports a table within 80 columns, one row per case, and the totals below it.
class TextReport : public Report {
 public:
  /// `cases` is the number of cases; `quiet` omits the rows of equal cases.
  TextReport(CaseSource source, std::int64_t cases, bool quiet);

  std::string begin() override;
  std::string answered(const Case& c, const CaseAnswer& answered, const Tally& tally) override;
  std::string end(const Ending& ending) override;
  std::string interrupted(const Ending& so_far, int signal) override;

 private:
  std::string head_of(const Case& c) const;
  std::string row(const Case& c, const Judgement& j, std::int64_t number) const;
  std::string totals(const Ending& ending) const;

  CaseSource source_;
  std::int64_t cases_;
  bool quiet_;
  std::string head_;  // printed last
};

}  // namespace shardproof::tools
