#pragma once

#include <string>
#include <vector>

#include "golden/diagnosis/diagnosis.h"
#include "golden/trace/verdict/verdict.h"

namespace shardproof::tools {

/// What `compare` has found of one file.
struct Comparison {
  std::string file;
  std::string golden;      ///< that it is judged by, if any
  std::string of;          ///< the case, or the line of the golden
  candidate::Claim claim;  ///< of a case
  candidate::Values values;
  candidate::Verdict verdict;
  bounds::Fit fail_on = bounds::Fit::unlikely;   ///< the best verdict of a value that is no success
  std::vector<std::string> notes;                ///< what a reader should know beside the verdict
  std::vector<diagnosis::Hypothesis> diagnosis;  ///< of the first divergence
};

/// Lines of at most 80 columns. `quiet`: without the rows of values that are right.
std::string text_report(const Comparison& of, bool quiet);
/// As docs/json.md says.
std::string json_report(const Comparison& of);

}  // namespace shardproof::tools
