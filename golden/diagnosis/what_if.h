#pragma once

#include <string>
#include <utility>
#include <vector>

#include "golden/diagnosis/search.h"

namespace shardproof::diagnosis {

/// Tries what follows with a change. A change that the step cannot be made with is no candidate.
void consider_change(const Question& question, Search& search, Candidate candidate,
                     const Question::Change& change);

/// Tries the right value with its elements in other places: element g holds what belongs to
/// from(g).
void consider_places(const Question& question, Search& search, Candidate candidate,
                     std::function<std::size_t(std::size_t)> from);

/// The right value times a constant, in the operations declared.
bounds::Carried scaled(const bounds::Carried& value, double factor, const bounds::Declared& by);

/// Whether a value that the dump has follows with these in place of what it has; false where the
/// dump lacks it. `factor`: of the value that is held against it.
bool follows(const Question& question, const std::string& id,
             const std::vector<std::pair<std::string, bounds::Carried>>& values);

/// Whether every element of a dumped value may be rounded from these.
bool holds(const Question& question, const std::string& id, const bounds::Carried& expected);

}  // namespace shardproof::diagnosis
