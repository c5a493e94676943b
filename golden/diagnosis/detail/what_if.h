#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/diagnosis/detail/search.h"

namespace shardproof::diagnosis {

/// Tries the value that follows from a change; ignores a change that the step cannot have.
void consider_change(const Question& question, Search& search, Candidate candidate,
                     const Question::Change& change);

/// Tries the right value with its elements moved: element g holds what belongs at from(g).
void consider_places(const Question& question, Search& search, Candidate candidate,
                     std::function<std::size_t(std::size_t)> from);

/// Returns the pass with its rows at other positions; nullopt if a row would begin before `least`
/// or end after `end`, or if nothing changes.
std::optional<PassPlan> moved(PassPlan pass, std::int64_t least, std::int64_t end,
                              const std::function<std::int64_t(std::int64_t start)>& start);

/// Returns a value times a constant, with the roundings of the declared operations.
bounds::Carried scaled(const bounds::Carried& value, double factor, const bounds::Declared& by);

/// Returns whether a value follows once `values` replace the dump's own; false if not dumped.
bool follows(const Question& question, const std::string& id,
             const std::vector<std::pair<std::string, bounds::Carried>>& values);

/// Returns whether every element of a dumped value may round from `expected`.
bool holds(const Question& question, const std::string& id, const bounds::Carried& expected);

/// Maps elements of the writer's value of this name and shape to the model's; nullopt: same.
using Places = std::function<std::optional<std::function<std::size_t(std::size_t)>>(
    const std::string& name, const Shape& shape)>;
/// Returns whether a writer's order of heads or channels is a convention: with it every dumped
/// value of this pass that it touches, or that follows from one, is right in all layers; and the
/// dump has a later value of this layer's attention that confirms it.
bool right_if_declared(const Question& question, const Places& places);

}  // namespace shardproof::diagnosis
