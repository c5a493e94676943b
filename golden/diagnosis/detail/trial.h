#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/row.h"
#include "golden/diagnosis/detail/search.h"

namespace shardproof::diagnosis {

/// Returns a fault's candidate, with these words in the places of its own.
template <class... Words>
Candidate candidate(const Row& row, const Words&... words) {
  return {.fault = row.fault,
          .detail = fmt::format(fmt::runtime(row.words), words...),
          .parameters = row.parameters};
}

/// Values by their ids.
using Values = std::vector<std::pair<std::string, bounds::IntervalTensor>>;
/// Returns the names of these values: "q_rot and k_rot".
std::string names_of(const Question& question, const std::vector<std::string>& ids);

/// Tries candidates of a wrong value.
class Trial {
 public:
  Trial(const Question& question, Search& search) : q_(question), search_(search) {}

  /// Tries the value that follows from a change; ignores a change that the step cannot have.
  void try_change(Candidate candidate, const Question::Change& change) {
    try_change(std::move(candidate), q_.step(), change);
  }
  /// Likewise, of another step of the value.
  void try_change(Candidate candidate, const Step& step, const Question::Change& change);
  /// Returns the value of a step under a change; nullopt if the step cannot have it.
  std::optional<bounds::IntervalTensor> value_under(const Step& step,
                                                    const Question::Change& change) const;
  void try_value(Candidate candidate, bounds::IntervalTensor value);
  /// Tries what follows if others have these values; `masked`: also where masks hide them.
  void try_values(Candidate candidate, Values values, bool masked = false);
  /// Tries what follows for the value from others that are replaced; ignores what the step cannot
  /// have. The other values that follow from them may refute it.
  void try_replaced(Candidate candidate, class Replaced replaced);
  /// Tries the value of another contraction.
  void try_sum(Candidate candidate, Contraction changed);
  /// Tries the right value with its elements moved: element g holds what belongs at from(g).
  void try_places(Candidate candidate, std::function<std::size_t(std::size_t)> from);

 protected:
  std::string id(std::string_view name) const { return q_.id_of(name); }

  const Question& q_;
  Search& search_;
};

/// Returns whether an op is an activation function.
bool is_activation(ModelOp op);
/// Returns the id of the operand that the step turns; "" if it reads none.
std::string turned_operand(const Question& question);
/// Returns whether the step has an exponential of each slot.
bool exponentiates(const Question& question);
/// Returns the exponentials of each slot in the value's layer; nullopt if the dump lacks them.
std::optional<bounds::Derivation::Place> dumped_exponentials(const Question& question);
/// Returns the ids of what a mean weighs by and of what it is divided by; nullopt if it is no mean.
std::optional<std::pair<std::string, std::string>> mean_of(const Question& question);

/// Returns whether an operand is a cache that is appended to, with a dim of slots.
bool is_cache(const Question& question, const std::string& id);
/// Returns the ids of a value's operands, of keys with the caches of prefixes.
std::vector<std::string> operands_of(const Question& question, const std::string& id);
/// Returns the ids of the caches that the value reads, through operands that the dump lacks, too.
std::vector<std::string> caches_of(const Question& question);

/// Returns a value times a constant, with the roundings of the declared operations.
bounds::IntervalTensor scaled(const bounds::IntervalTensor& value, double factor,
                              const bounds::DeclaredArithmetic& by);
/// Returns a value that a program of this arithmetic may round to the format in which values are
/// stored, as scores that it rounds after their scale: the hull of both, or the value if none may.
bounds::IntervalTensor rounded_or_not(const bounds::IntervalTensor& value,
                                      const bounds::DeclaredArithmetic& by);

/// Returns the value's pass with its rows at other positions; nullopt if a row would begin before 0
/// or end after `end`, or if nothing changes.
std::optional<PassPlan> moved(const Question& question, std::int64_t end,
                              const std::function<std::int64_t(std::int64_t start)>& to);

/// The values that follow from a dump in which some are replaced.
class Replaced {
 public:
  explicit Replaced(const Question& question) : q_(question) {}
  /// `masked`: the value is read with what masks hide, which is not 0.
  void put(const std::string& id, bounds::IntervalTensor value, bool masked = false) {
    values_[id] = std::move(value);
    if (masked) masked_.insert(id);
  }
  /// The value is what follows under a change of its step.
  void change(const std::string& id, Question::Change change) { changes_[id] = std::move(change); }
  /// Returns what the operands of a value imply; those that the dump lacks follow in turn.
  bounds::IntervalTensor expected(const std::string& id);
  /// Returns a value: its replacement, or if the dump lacks it what follows.
  const bounds::IntervalTensor& value(const std::string& id);
  /// Returns what the operands of the question's value imply; nullopt if a line on the way is not
  /// evaluated by itself.
  std::optional<bounds::IntervalTensor> implied();
  /// Returns whether another dumped value of the layer would be another one, but is right. One that
  /// is wrong shows nothing: it may have a fault of its own.
  bool contradicted();

 private:
  /// Returns whether a value that the dump lacks is computed from a replaced one.
  bool follows(const std::string& id);

  const Question& q_;
  std::map<std::string, bounds::IntervalTensor> values_;
  std::map<std::string, Question::Change> changes_;
  std::map<std::string, bool> follows_;
  std::set<std::string> masked_;
};

/// Returns whether a value follows once `values` replace the dump's own; false if not dumped.
bool follows(const Question& question, const std::string& id, const Values& values);

/// Returns whether every element of a dumped value may round from `expected`.
bool holds(const Question& question, const std::string& id, const bounds::IntervalTensor& expected);

/// Maps elements of the writer's value of this name and shape to the model's; nullopt: same.
using Places = std::function<std::optional<std::function<std::size_t(std::size_t)>>(
    const std::string& name, const Shape& shape)>;
/// Returns whether a writer's order of heads or channels is a convention: with it every dumped
/// value of this pass that it touches, or that follows from one, is right in all layers; and the
/// dump has a later value of this layer's attention that confirms it.
bool right_if_declared(const Question& question, const Places& places);

}  // namespace shardproof::diagnosis
