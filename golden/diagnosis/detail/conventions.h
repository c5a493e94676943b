#pragma once

#include "golden/diagnosis/detail/row.h"

namespace shardproof::diagnosis {

// Each returns whether a convention of the writer explains more than this value.

/// Gains are in the next weights: all values that follow from norms are right with gains put back.
bool gains_folded(const Question& question);
/// Scores are in units of the other base: what follows from them is right in the model's.
bool followed_in_other_units(const Question& question);
/// Exponentials are of scores that the dump has in units of the other base.
bool scores_in_other_units(const Question& question);

/// Returns whether the model's exponentials are of base 2.
bool of_base2(const Question& question);
/// Returns the factor from the model's units of scores to those of the other base.
double to_other_base(const Question& question);
/// The value that follows from scores and maxima in the other units.
Edit of_other_units();

/// The sum before its bias, with the bias added.
Edit with_bias_inside();

}  // namespace shardproof::diagnosis
