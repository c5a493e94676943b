#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/program/typing.h"
#include "engine/run/plan.h"
#include "weights/base/error.h"

namespace shardproof {

/// The types of a program's values, by name.
using ValueTypes = std::map<std::string, Type>;

/// The types of one pass's programs.
struct PassTypes {
  ValueTypes embed, layer, head, sample;
  std::vector<ValueTypes> other_layers = {};  ///< of PhasePrograms::other_layers
};

/// Passes of one phase and one L: they differ only in M, which grows from the first to the last.
struct TypedPasses {
  Phase phase;
  std::int64_t L, count;
  PassTypes first, last;
};

/// The types of a run, computed once for the verdict "types" and the memory estimates.
struct PlanTypes {
  std::vector<TypedPasses> passes;
  ValueTypes hand_over;
  ValueTypes prefix_hand_over, prefix_to_decode;  ///< empty without prefixes
};

/// Type-checks one program of a case for a pass over L positions after M cached ones of the row's
/// own (hand-over: caches of length M), not for one over its prefixes, and returns the types of its
/// values. Throws what check() of one program throws (engine/program/typing.h).
ValueTypes check(const Program& program, const Case& c, std::int64_t L, std::int64_t M);
/// Type-checks one program for a pass, with findings in place of Errors; their steps are names of
/// values. `model` is the placed model.
ValueTypes check(const Program& program, const ModelConfig& model, const Torus& torus,
                 const PassExtents& pass, Findings& findings);

/// Type-checks a plan as below. Throws the first finding.
PlanTypes check(const RunPlan& plan);
/// Type-checks each program for all its shapes, then what it hands to the next ("program_c7").
/// Returns nullopt if there are findings; a fault of a step is found once, in its first pass.
std::optional<PlanTypes> check(const RunPlan& plan, Findings& findings);

/// A plan and its types, computed once for all users. A plan that was changed is typed again by
/// make_typed_plan(RunPlan).
struct TypedPlan {
  RunPlan plan;
  std::optional<PlanTypes> types;
  std::vector<Finding> findings;  ///< findings of the type check, if there are no types
};
/// Builds and types a case's plan. Throws what make_plan throws, and, if the case has a user's
/// layer program or a model that is a text, type errors as a FindingsError: the first or all. Type
/// errors in programs that the library built for a model of keys are kept in `findings`.
TypedPlan make_typed_plan(const Case& c, Findings::Until until = Findings::Until::first);
/// Types a given plan. Throws a FindingsError if its case has a user's layer program.
TypedPlan make_typed_plan(RunPlan plan, Findings::Until until = Findings::Until::first);

}  // namespace shardproof
