#pragma once

#include <string>
#include <vector>

#include "golden/cases/coverage.h"
#include "tools/runner/batch.h"
#include "tools/runner/case_source.h"
#include "tools/runner/tally.h"

namespace shardproof::tools {

/// All that a report's end says.
struct Ending {
  const Tally& tally;
  double seconds;  ///< by the wall clock
  /// Of random cases what they covered; none of others.
  const cases::Coverage* coverage = nullptr;
  std::vector<std::string> skipped = {};  ///< cases that are not legal, and why
  std::string least = {};                 ///< the command of the smallest failure; empty if none

  /// What random cases should have covered and did not, or "".
  std::string shortfall() const { return coverage != nullptr ? coverage->shortfall() : ""; }
  bool held() const { return !tally.first_failure && shortfall().empty(); }
};

/// How a run of many cases is shown: each function returns what is to be printed next.
class Report {
 public:
  virtual ~Report() = default;

  virtual std::string begin() = 0;
  /// `tally` counts this answer already.
  virtual std::string answered(const Case& c, const Answered& answered, const Tally& tally) = 0;
  virtual std::string end(const Ending& ending) = 0;
  /// In place of the end, what there is so far.
  virtual std::string interrupted(const Ending& so_far, int signal) = 0;
};

/// "SIGINT".
std::string signal_name(int signal);

}  // namespace shardproof::tools
