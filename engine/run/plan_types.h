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
};

/// Passes of one phase and one L: they differ by M, which grows from the first to the last.
struct TypedPasses {
  Phase phase;
  std::int64_t L, count;
  PassTypes first, last;
};

/// The types of a run, computed once: for the verdict "types", for the estimates of memory.
struct PlanTypes {
  std::vector<TypedPasses> passes;
  ValueTypes hand_over;
  ValueTypes prefix_hand_over, prefix_to_decode;  ///< none of a run without prefixes
};

/// Type-checks one program of a case for a pass over L positions with M own cached ones before it
/// (hand-over: caches of length M), not one over its prefixes, and returns the types of its values.
/// Throws what check() of one program throws (engine/program/typing.h).
ValueTypes check(const Program& program, const Case& c, std::int64_t L, std::int64_t M);
/// The same with findings in place of Errors; their steps are names of values. `model` as placed.
ValueTypes check(const Program& program, const ModelConfig& model, const Torus& torus,
                 const PassExtents& pass, Findings& findings);

/// Type-checks every program of the plan for the shapes it will meet. Throws likewise.
PlanTypes check(const RunPlan& plan);
/// The same with findings in place of Errors; no types where there are any. A fault of a step is
/// found once, however many passes run the program, and in the first of them.
std::optional<PlanTypes> check(const RunPlan& plan, Findings& findings);

/// A plan and its types, made once for all who ask. A plan that was changed is typed again, by
/// make_typed_plan(RunPlan).
struct TypedPlan {
  RunPlan plan;
  std::optional<PlanTypes> types;
  std::vector<Finding> findings;  ///< of the type check, where there are no types
};
/// Throws what make_plan throws, and what check() finds in a case with a user's layer program,
/// which is the caller's to mend, as a FindingsError of the first or of all; of a program that the
/// library built it keeps what was found.
TypedPlan make_typed_plan(const Case& c, Findings::Until until = Findings::Until::first);
/// The same of a plan that is made already.
TypedPlan make_typed_plan(RunPlan plan, Findings::Until until = Findings::Until::first);

}  // namespace shardproof
