#pragma once

#include <memory>

#include "engine/program/fault_hooks.h"
#include "engine/run/plan.h"
#include "golden/faults/operator.h"
#include "weights/base/error.h"

namespace shardproof::faults {

/// A mutant in a plan: what its author wrote, and what runs.
struct Planted {
  /// The plan as someone would write the fault, for the type check; null if programs do not show
  /// it.
  std::unique_ptr<RunPlan> written;
  RunPlan run;
};

/// Plants a mutant in a plan. Throws Error("faults_only", ...) if its site is not in the plan, or
/// the operator does not apply there with this parameter.
Planted plant(const TypedPlan& typed, const Mutant& mutant);

/// Returns the hooks that make a run of `planted.run` go wrong; new ones for each run. `mutant`,
/// `c`, which is the case of that run, and `seen`, which must observe it before any judge, must
/// outlive the run.
FaultHooks hooks_of(const Mutant& mutant, const Case& c, const Seen& seen);

/// Returns every mutant of a plan by operators that are for cases of this kind, in the order of the
/// table and of the plan's steps. A step that both phases have in the same words is mutated in the
/// prefill alone, but by faults of positions, caches, stale buffers and replicas, which depend on
/// the pass.
std::vector<Mutant> mutants_of(const TypedPlan& typed, std::string_view kind);

}  // namespace shardproof::faults
