#pragma once

#include <string>
#include <vector>

#include "golden/cases/coverage.h"
#include "tools/runner/batch.h"
#include "tools/runner/case_source.h"
#include "tools/runner/tally.h"

namespace shardproof::tools {

/// Content of the end of a report.
struct Ending {
  const Tally& tally;
  double seconds;  ///< wall clock
  /// Coverage of random cases; null for others.
  const cases::Coverage* coverage = nullptr;
  std::vector<std::string> skipped = {};  ///< illegal cases, with reasons
  std::string least = {};                 ///< command of the first failure, shrunk if random; or ""

  /// Returns what random cases should have covered and did not, or "".
  std::string shortfall() const { return coverage != nullptr ? coverage->shortfall() : ""; }
  bool passed() const { return !tally.first_failure && shortfall().empty(); }
};

/// Presentation of a run of many cases: each function returns the text to print next.
class Report {
 public:
  virtual ~Report() = default;

  virtual std::string begin() = 0;
  /// Reports one answer, which `tally` already includes.
  virtual std::string answered(const Case& c, const CaseAnswer& answered, const Tally& tally) = 0;
  virtual std::string end(const Ending& ending) = 0;
  /// Reports the results so far, instead of end().
  virtual std::string interrupted(const Ending& so_far, int signal) = 0;
};

/// Returns the name of a signal: "SIGINT".
std::string signal_name(int signal);

}  // namespace shardproof::tools
