#pragma once

#include <cstdint>
#include <exception>
#include <optional>

#include "engine/program/execute.h"
#include "engine/program/fault_hooks.h"
#include "engine/run/plan_types.h"
#include "engine/shards/hazards.h"
#include "golden/memo/oracle_memo.h"
#include "golden/verdict/judgement.h"
#include "weights/base/error.h"

namespace shardproof {

/// Options for running one case; the defaults are those of `shardproof verify`.
struct VerifyOptions {
  int threads = 1;                   ///< over chips
  int at_once = 1;                   ///< cases that share the machine's memory
  const Weights* weights = nullptr;  ///< used instead of generated ones
  Hazards hazards = Hazards::hostile();
  bool also_field = false;  ///< also run cases of other regimes in the field regime
  /// The seed of the field's numbers, instead of the case's. The bound assumes that the seed is
  /// drawn after the program was written.
  std::optional<std::uint64_t> field_seed = {};
  Observer* observer = nullptr;  ///< sees the case's own run before the judge does
  FaultHooks faults = {};        ///< injected into the run; the type check does not see them
  /// Stop a run at the first finding, or continue as far as it can.
  Findings::Until until = Findings::Until::first;
};

/// Returns the verdict on a run that ended by this exception: refused, with a finding of the run.
Judgement ended_by(const std::exception_ptr& error);

/// Runs a case on the simulated chips under the judge. A case with regime=f32 is judged twice: in
/// the exact regime against the oracle, since the scalar model would follow a wrong program, then
/// as given against the scalar model; it is equal only if both are.
///
/// A case with regime=field runs in that regime alone; with `also_field` any other case also runs
/// in it, and is equal only if both are.
///
/// Once the case is known to be legal, a failure is a finding, not an exception: an ill-typed built
/// program, replicas that differ and values that differ from the oracle's are `different`; a run
/// that could not continue (a value that overflowed, any exception of engine or oracle) is
/// `refused`. A case that ran to its end is not judged if it proves nothing
/// (golden/verify/evidence.h).
///
/// Throws Error only on a caller's mistake: an illegal case or table, what require_memory throws,
/// for a user's layer program what check() finds (a FindingsError with the first finding or,
/// depending on `until`, all) and "judge_c1" (it asks for a value that the model does not have);
/// and whatever `options.observer` and `options.faults` throw.
Judgement verify_case(const Case& c, OracleMemo& memo, const VerifyOptions& options = {});
/// Runs and judges a plan that is already built, as verify_case does. Throws std::logic_error if
/// the plan has neither types nor findings: it was not checked.
Judgement verify_plan(const TypedPlan& typed, OracleMemo& memo, const VerifyOptions& options = {});
/// Runs and judges a plan without the type check, which shows that the judge needs none.
Judgement verify_unchecked(RunPlan plan, OracleMemo& memo, const VerifyOptions& options = {});

/// Throws Error("memory_c1", ...) if a run of the plan, or with `also_field` a run in the field
/// regime, whose numbers are larger, would need more than four fifths of the memory available to
/// this process (weights/base/memory.h), divided by the number of cases that run `at_once`.
void require_memory(const TypedPlan& typed, int at_once = 1, bool also_field = false,
                    Replicas replicas = Replicas::shared);

}  // namespace shardproof
