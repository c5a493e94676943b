#pragma once

#include <string>
#include <vector>

#include "tools/runner/report.h"
#include "tools/text/junit.h"

namespace shardproof::tools {

/// Writes JUnit's XML to a file at the end: a test case for each case. Prints nothing. Throws
/// Error("file_write", ...) if the file cannot be written.
class JunitReport : public Report {
 public:
  JunitReport(CaseSource source, std::string file);

  std::string begin() override { return ""; }
  std::string answered(const Case& c, const CaseAnswer& answered, const Tally& tally) override;
  std::string end(const Ending& ending) override;
  std::string interrupted(const Ending& so_far, int signal) override;

 private:
  void write() const;

  CaseSource source_;
  std::string file_;
  std::vector<JunitCase> cases_;
};

}  // namespace shardproof::tools
