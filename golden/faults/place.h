#pragma once

#include <cstddef>
#include <optional>

#include "engine/collectives/moves.h"
#include "engine/run/plan_types.h"
#include "golden/faults/mutant.h"
#include "weights/base/error.h"

namespace shardproof::faults {

/// A site of a typed plan, as operators ask where they apply. Refers to the plan.
struct Place {
  const TypedPlan& typed;
  Site site;
  const Torus& torus;
  const Program& program;
  std::size_t index = 0;              ///< of the op; of a weight, of the program's input
  const ValueTypes* types = nullptr;  ///< of the program's values

  bool is_weight() const { return site.phase == "weights"; }
  const Case& source_case() const { return typed.plan.source_case; }
  const Op& op() const { return program.ops.at(index); }
  const Op* op_or_null() const { return is_weight() ? nullptr : &op(); }
  const ValueDecl& declared() const {
    return is_weight() ? program.inputs.at(index) : op().results[0];
  }
  const Type& type_of(const std::string& value) const { return types->at(value); }
  /// Whether the program of a layer has the step, or reads the weight.
  bool in_layer(std::int64_t layer) const;
  /// The registry's row of a weight.
  const WeightRow& weight() const;
  /// The shape of a chip's shard of a value.
  Shape local(const std::string& value) const;
};

/// Returns every place of a plan: the steps of both phases' programs and of the hand-over, then the
/// weights of the prefill. Steps of decode are left out if there are no decode steps.
std::vector<Place> places_of(const TypedPlan& typed);

/// Returns the program of a site, to be edited: of several layers' programs the first that has it,
/// or, where none has, the first.
/// Throws Error("faults_only", ...) if there is none.
Program& program_at(RunPlan& plan, const Site& site);

/// A collective as it runs: what is needed to say who should have sent what.
struct MovesAt {
  const Torus& torus;
  const Op& op;
  const Layout& operand;
  const Moves& right;

  std::size_t dim(char letter) const { return operand.find(letter).value(); }
  /// The chips of a chip's group, in the order of the pieces.
  std::vector<int> group(int chip) const { return torus.group(chip, op.axes); }
  int size() const { return torus.size(op.axes); }
};

/// Returns the plan of a collective or slice with other parameters than `op` has.
Moves moves_of(const Torus& torus, const Op& op, const Layout& operand, const Shape& local);
/// Returns whether two plans give every chip the same pieces; where they are added up, in whatever
/// order.
bool same_parts(const Moves& a, const Moves& b, bool added);

}  // namespace shardproof::faults
