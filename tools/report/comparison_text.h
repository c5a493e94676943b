#pragma once

#include <string>
#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/verdict/verdict.h"

namespace shardproof::tools {

/// Result of `compare` for one file.
struct Comparison {
  std::string file;
  std::string golden;  ///< file of the golden it is judged by, if any
  std::string of;      ///< case, or line of the golden
  dump::Claim claim;   ///< what the file claims about its case
  dump::Values values;
  dump::Verdict verdict;
  bounds::Fit fail_on = bounds::Fit::unlikely;   ///< best verdict that counts as a failure
  std::vector<std::string> notes;                ///< remarks besides the verdict
  std::vector<diagnosis::Hypothesis> diagnosis;  ///< causes of the first divergence
};

/// Prints the comparison in at most 80 columns. `quiet` omits the rows of correct values.
std::string text_report(const Comparison& of, bool quiet);
/// Prints the comparison as JSON (docs/json.md).
std::string json_report(const Comparison& of);

}  // namespace shardproof::tools
