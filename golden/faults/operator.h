#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/program/execute.h"
#include "golden/faults/place.h"
#include "golden/faults/seen.h"
#include "weights/base/error.h"

namespace shardproof::faults {

/// The result of a mutated step, while the run is there.
struct Here {
  const Case& source_case;
  const Scope& scope;
  const Program& program;
  const Op& op;
  const ValueDecl& declared;  ///< which of the op's results
  const Seen& seen;           ///< values before this step
  const std::string& parameter;

  const Sharded& arg(std::size_t i) const { return seen.at(op.args.at(i)); }
  bool in_field() const { return source_case.numerics.regime == Regime::field; }
};

/// Changes a result. Called for each result of the step, in order, in each pass and layer; a new
/// one is made for each run, so that it may remember values.
using ResultEdit = std::function<void(const Here&, Sharded& value)>;
/// Changes the plan of a collective; nullopt where the fault does not fit this plan's shapes.
using MovesEdit = std::function<std::optional<Moves>(const MovesAt&, const std::string& parameter)>;
/// Changes what chips hold of a weight; `layer` is -1 for a weight of the whole model.
using WeightEdit = std::function<void(const Case&, int layer, Sharded& placed)>;
using ProgramEdit =
    std::function<void(Program& program, std::size_t op, const std::string& parameter)>;

/// One row of the table of faults: a way to be wrong, where it applies, and how it is planted.
/// Exactly one of moves, result, weight and planted plants it.
struct Operator {
  std::string_view name;             ///< "drop-collective"
  std::string_view fault_class;      ///< "M1"
  std::string_view what;             ///< a sentence for a user
  std::string_view cases = "plain";  ///< the kinds of cases that it is planted in (cases.h)

  /// Whether what it does depends on the phase, although the step is the same.
  bool in_both_phases() const {
    return fault_class == "M9" || fault_class == "M10" || fault_class == "M13" ||
           fault_class == "M14";
  }

  /// Returns the values of its parameter at a place, {"-"} for one without; empty: none applies.
  std::function<std::vector<std::string>(const Place&)> parameters = {};
  /// Edits the program as someone would write the fault, for the type check. Null: the fault is in
  /// an op's own code or in its data, which types do not describe.
  ProgramEdit written = {};

  MovesEdit moves = {};
  std::function<ResultEdit()> result = {};
  std::function<WeightEdit(const std::string& parameter)> weight = {};
  /// Edits the program that runs; its layouts are believed.
  ProgramEdit planted = {};
};

/// Every operator, by class.
const std::vector<Operator>& all_operators();
/// Throws Error("faults_only", ...) if there is no operator of this name, naming the nearest.
const Operator& find_operator(std::string_view name);

/// Parts of the table.
std::vector<Operator> operators_of_moves();
std::vector<Operator> operators_of_sums();
std::vector<Operator> operators_of_weights();
std::vector<Operator> operators_of_attention();
std::vector<Operator> operators_of_values();
std::vector<Operator> operators_of_buffers();
std::vector<Operator> operators_of_programs();
std::vector<Operator> operators_of_hand_overs();

}  // namespace shardproof::faults
