#pragma once

#include <functional>
#include <vector>

#include "golden/diagnosis/detail/question.h"

namespace shardproof::diagnosis {

/// Returns what is said of a value that has one fault.
using Diagnose = std::function<std::vector<Hypothesis>(const Wrong& wrong)>;

/// Returns two faults of a value of which each wrong chip has one, or else each wrong row, if both
/// are found; otherwise none. Each says which chips or rows it is of. A value with partial sums, a
/// weight, and one with too many numbers for as many searches have none.
std::vector<Hypothesis> two_faults(const Question& question, const Wrong& wrong,
                                   const Diagnose& one);

}  // namespace shardproof::diagnosis
