#pragma once

#include <string>
#include <vector>

#include "weights/text/model_text.h"

namespace shardproof {

/// A text in which one op, parameter, number, guard, indicator, letter, value or weight is another.
struct Mutant {
  std::string line;  ///< name of the line that is another
  std::string what;  ///< "silu -> sigmoid", with the line as it is now
  ModelText text;
};

/// Returns every mutant of a text that is itself a legal text: one for each place of each line and
/// each other word of its kind.
std::vector<Mutant> mutants_of(const ModelText& text);

}  // namespace shardproof
