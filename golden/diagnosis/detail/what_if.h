#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/diagnosis/detail/search.h"

namespace shardproof::diagnosis {

/// Tries what follows with a change. A change that the step cannot be made with is no candidate.
void consider_change(const Question& question, Search& search, Candidate candidate,
                     const Question::Change& change);

/// Tries the right value with its elements in other places: element g holds what belongs to
/// from(g).
void consider_places(const Question& question, Search& search, Candidate candidate,
                     std::function<std::size_t(std::size_t)> from);

/// A pass with its rows at other positions; nothing where one would begin before `least` or end
/// after `end`, or where they are the same.
std::optional<PassPlan> moved(PassPlan pass, std::int64_t least, std::int64_t end,
                              const std::function<std::int64_t(std::int64_t start)>& start);

/// The right value times a constant, in the operations declared.
bounds::Carried scaled(const bounds::Carried& value, double factor, const bounds::Declared& by);

/// Whether a value that the dump has follows with these in place of what it has; false where the
/// dump lacks it. `factor`: of the value that is held against it.
bool follows(const Question& question, const std::string& id,
             const std::vector<std::pair<std::string, bounds::Carried>>& values);

/// Whether every element of a dumped value may be rounded from these.
bool holds(const Question& question, const std::string& id, const bounds::Carried& expected);

/// Of a value of this name and shape, which element of the model's each of the writer's is; none
/// where all stand in their own places.
using Places = std::function<std::optional<std::function<std::size_t(std::size_t)>>(
    const std::string& name, const Shape& shape)>;
/// Whether a writer's order of heads or channels is a convention: with it, in all layers of this
/// pass, every dumped value that it touches, or that is made of one, is right; and some value made
/// of this one is there.
bool right_if_declared(const Question& question, const Places& places);

}  // namespace shardproof::diagnosis
