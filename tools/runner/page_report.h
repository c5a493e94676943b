#pragma once

#include <cstdint>
#include <string>

#include "tools/runner/report.h"

namespace shardproof::tools {

/// Writes one HTML page to a file at the end: a sentence, the cases that failed with what was
/// found, and a table of all (of equal ones the first 10,000). Prints nothing. Throws
/// Error("file_write", ...) if the file cannot be written.
class PageReport : public Report {
 public:
  PageReport(CaseSource source, std::string file);

  std::string begin() override { return ""; }
  std::string answered(const Case& c, const CaseAnswer& answered, const Tally& tally) override;
  std::string end(const Ending& ending) override;
  std::string interrupted(const Ending& so_far, int signal) override;

 private:
  void write(const Ending& ending, const std::string& ended) const;

  CaseSource source_;
  std::string file_;
  std::string first_, failures_, rows_;  // HTML
  std::int64_t listed_ = 0;
};

}  // namespace shardproof::tools
