#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>

#include "engine/program/execute.h"
#include "engine/program/fault_hooks.h"
#include "engine/run/plan_types.h"
#include "engine/shards/hazards.h"
#include "golden/memo/oracle_memo.h"
#include "golden/verdict/judgement.h"
#include "weights/base/error.h"

namespace shardproof {

/// How one case is run; the defaults are what `shardproof verify` does.
struct VerifyOptions {
  int threads = 1;                   ///< over chips
  int at_once = 1;                   ///< cases that share the machine's memory
  const Weights* weights = nullptr;  ///< instead of generated ones
  Hazards hazards = Hazards::hostile();
  bool also_field = false;  ///< a case of another regime is run in the field regime as well
  /// Of the field's numbers, in place of the case's seed. The bound is over a seed that is drawn
  /// after the program was written.
  std::optional<std::uint64_t> field_seed = {};
  bool check_types = true;               ///< off only to show that the judge needs no type check
  Observer* observer = nullptr;          ///< sees the case's own run before the judge does
  std::function<void(RunPlan&)> mutate;  ///< test hook
  FaultHooks faults = {};                ///< planted in the run; the type check does not see them
  /// Whether a run ends at what is found first, or goes on as far as it can.
  Findings::Until until = Findings::Until::first;
};

/// The answer to a case whose run ended by this exception: refused, with a finding of the run.
Judgement ended_by(const std::exception_ptr& error);

/// Runs a case on the simulated chips under the judge. A case with regime=f32 is judged twice: in
/// the exact regime against the oracle, since the scalar model would follow a wrong program, then
/// as it is against the scalar model; it is equal only if both are.
///
/// A case with regime=field runs in that regime alone; with `also_field` any other case does
/// besides, and is equal only if it is in both.
///
/// What goes wrong once the case is known to be legal is a finding, not an exception: an ill-typed
/// built program, replicas that differ and values that are not the oracle's are `different`; a run
/// that could not go on (a value that overflowed, any exception of engine or oracle) is `refused`.
/// A case that ran to its end is not judged where it proves nothing (golden/verify/evidence.h).
///
/// Throws Error only on a caller's mistake: an illegal case or table, what require_memory throws,
/// and of a user's layer program what check() finds (a FindingsError of the first or, with `until`,
/// of all) and "judge_c1" (it asks for a value that the model does not have); and whatever
/// `options.observer` and `options.faults` throw.
Judgement verify_case(const Case& c, OracleMemo& memo, const VerifyOptions& options = {});
/// The same of a plan that is made already.
Judgement verify_plan(const TypedPlan& typed, OracleMemo& memo, const VerifyOptions& options = {});

/// Throws Error("memory_c1", ...) if a run of the plan, or with `also_field` one of the field
/// regime, whose numbers are larger, would need more than four fifths of the memory that this
/// process may take (weights/base/memory.h), divided by the number of cases that run `at_once`.
void require_memory(const TypedPlan& typed, int at_once = 1, bool also_field = false,
                    Replicas replicas = Replicas::shared);

}  // namespace shardproof
