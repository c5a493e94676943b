#pragma once

#include <string>

#include "tools/verbs/explain_subject.h"

namespace shardproof::tools {

/// How steps are shown: as text, or in one of the other forms.
struct StepsForm {
  bool paper = false;  ///< without (K-1)/K, as the paper's formulas are
  bool json = false;
  bool text = false;  ///< the layer program only, as a file that `verify --program` reads
  std::string svg;    ///< a file into which the layer is drawn
};

/// Prints the steps of one subject, in every form except a table. Returns the exit code.
int explain_steps(const Subject& of, const StepsForm& form);

}  // namespace shardproof::tools
