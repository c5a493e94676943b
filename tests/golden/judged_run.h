#pragma once

// A run of our own under a judge of any regime, with something between the two.
#include <memory>
#include <utility>

#include "engine/run/inference.h"
#include "golden/judge/judge.h"
#include "golden/memo/oracle_memo.h"
#include "golden/verify/bounds_judge.h"
#include "golden/verify/scalar_judge.h"

namespace shardproof {

template <class OfRun>
OfRun make_judge(const RunPlan& plan, const OracleMemo::Known& known, Findings& findings) {
  if constexpr (std::is_same_v<OfRun, Judge>)
    return Judge(known.answer, known.stored, findings);
  else if constexpr (std::is_same_v<OfRun, ScalarJudge>)
    return ScalarJudge(plan, known.stored, known.prompt, known.answer, findings);
  else
    return BoundsJudge(plan, findings);
}

/// Not to be copied: the judge points into it.
template <class OfRun>
struct JudgedRun {
  explicit JudgedRun(RunPlan of, Findings::Until until = Findings::Until::first)
      : plan(std::move(of)), findings(until) {}
  explicit JudgedRun(const Case& c) : JudgedRun(make_plan(c)) {}
  JudgedRun(const JudgedRun&) = delete;
  JudgedRun& operator=(const JudgedRun&) = delete;

  /// Runs `runs`, by default the judged plan, shown to `seen`, which passes on to the judge what it
  /// is to see.
  void run(Observer& seen, const FaultHooks& faults = {}, const RunPlan* runs = nullptr) {
    Threads threads(1);
    const IntTensor generated =
        run_inference(runs == nullptr ? plan : *runs, known->weights, known->prompt, threads, &seen,
                      Hazards::hostile(), faults, &findings);
    if constexpr (!std::is_same_v<OfRun, BoundsJudge>)
      if (!findings.ended()) judge.observe_generated(generated);
  }
  void run(const FaultHooks& faults = {}) { run(judge, faults); }

  RunPlan plan;
  OracleMemo memo;
  std::shared_ptr<const OracleMemo::Known> known = memo.get(plan);
  Findings findings;
  OfRun judge = make_judge<OfRun>(plan, *known, findings);
};

}  // namespace shardproof
