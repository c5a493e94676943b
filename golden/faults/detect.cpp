#include "golden/faults/detect.h"

#include <algorithm>
#include <exception>

#include "engine/run/inference.h"
#include "golden/compare/case_padding.h"
#include "golden/judge/judge.h"
#include "golden/verify/bounds_judge.h"
#include "golden/verify/field_run.h"
#include "golden/verify/observers.h"

namespace shardproof::faults {
namespace {

/// Forwards values to the bounds until they have found something: what follows is a consequence.
class FirstBound : public Observer {
 public:
  explicit FirstBound(const RunPlan& plan) : judge_(plan, findings_) {}
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    if (found()) return;
    try {
      judge_.observe(scope, program, op, declared, value);
    } catch (const Error& error) {
      // The op has no bounds: its operands and its result cannot belong together.
      findings_.add({.label = error.label(), .message = error.message()});
    }
  }
  bool found() const { return !findings_.all().empty(); }
  std::string text() const { return found() ? findings_.all()[0].to_string() : ""; }

 private:
  Findings findings_;
  BoundsJudge judge_;
};

RunPlan in_regime(RunPlan plan, Regime regime) {
  plan.source_case.numerics.regime = regime;
  return plan;
}

/// What the type check says of the program as someone would write it.
bool refused_by_types(const Planted& planted) {
  if (planted.written == nullptr) return false;
  Findings findings;
  try {
    return !check(*planted.written, findings).has_value();
  } catch (const Error&) {
    return true;
  }
}

std::string first_of(const Findings& findings) {
  return findings.all().empty() ? "" : findings.all()[0].to_string();
}

std::string exact_run(const RunPlan& plan, const Mutant* mutant, OracleMemo& memo) {
  const auto known = memo.get(plan);
  Seen seen;
  Findings findings;
  Judge judge(known->answer, known->stored, findings, dim_padding(plan.source_case));
  Observers both({&seen, &judge});
  const FaultHooks hooks =
      mutant == nullptr ? FaultHooks{} : hooks_of(*mutant, plan.source_case, seen);
  const IntTensor generated = run_inference(
      plan, known->weights, known->prompt, calling_thread(),
      mutant == nullptr ? static_cast<Observer*>(&judge) : &both, {}, hooks, &findings);
  if (!findings.ended()) judge.observe_generated(generated);
  return first_of(findings);
}

bool field_has(const RunPlan& plan, const Mutant& mutant) {
  return has_meaning_in_field(plan.source_case.model) &&
         !(mutant.site.program == "sample" && plan.source_case.sampling.sample == Sample::random);
}

/// The float run, to its end: bounds, replicas, and the checks of others.
void float_run(const RunPlan& plan, const Mutant& mutant, OracleMemo& memo, Sights& sights) {
  const auto known = memo.get(plan);
  Seen seen;
  FirstBound bounds(plan);
  Others others(known->answer, plan.source_case.model);
  Observers all({&seen, &bounds, &others});
  Findings findings(Findings::Until::all);
  Hazards hazards;
  hazards.replicas = true;
  run_inference(plan, known->weights, known->prompt, calling_thread(), &all, hazards,
                hooks_of(mutant, plan.source_case, seen), &findings);
  bool copies = false, broken = false;
  for (const Finding& one : findings.all()) {
    copies = copies || one.detector == Detector::replicas;
    broken = broken || one.detector == Detector::run || one.detector == Detector::types;
  }
  sights.own[static_cast<std::size_t>(Seer::replicas)] = copies ? Sight::seen : Sight::silent;
  // A run that breaks off is seen by whoever waits for its result.
  sights.own[static_cast<std::size_t>(Seer::bounds)] =
      bounds.found() || broken ? Sight::seen : Sight::silent;
  if (sights.first.empty()) sights.first = bounds.found() ? bounds.text() : first_of(findings);
  sights.others = others.finish(!broken);
}

}  // namespace

std::span<const std::string_view> detector_names() {
  static constexpr std::array<std::string_view, kDetectors> kNames{"types", "replicas", "exact",
                                                                   "field", "bounds"};
  return kNames;
}

std::string judge_exact(const RunPlan& plan, const Mutant* mutant, OracleMemo& memo) {
  return exact_run(in_regime(plan, Regime::exact), mutant, memo);
}

Sights detect(const TypedPlan& typed, const Mutant& mutant, OracleMemo& memo) {
  Sights sights;
  const Planted planted = plant(typed, mutant);
  const auto at = [&](Seer one) -> Sight& { return sights.own[static_cast<std::size_t>(one)]; };
  at(Seer::types) = refused_by_types(planted) ? Sight::seen : Sight::silent;
  sights.first = exact_run(in_regime(planted.run, Regime::exact), &mutant, memo);
  at(Seer::exact) = sights.first.empty() ? Sight::silent : Sight::seen;
  if (field_has(planted.run, mutant)) {
    const RunPlan plan = in_regime(planted.run, Regime::field);
    Seen seen;
    VerifyOptions options;
    options.observer = &seen;
    options.faults = hooks_of(mutant, plan.source_case, seen);
    options.hazards = {};
    const Judgement judgement = judge_in_field(plan, memo, options);
    at(Seer::field) = judgement.findings.empty() ? Sight::silent : Sight::seen;
    if (sights.first.empty() && !judgement.findings.empty())
      sights.first = judgement.findings[0].to_string();
  } else {
    at(Seer::field) = Sight::not_run;
  }
  float_run(in_regime(planted.run, Regime::f32), mutant, memo, sights);
  return sights;
}

Sights detect_in_floats(const TypedPlan& typed, const Mutant& mutant, OracleMemo& memo) {
  Sights sights;
  const Planted planted = plant(typed, mutant);
  sights.first = exact_run(in_regime(planted.run, Regime::exact), &mutant, memo);
  sights.own[static_cast<std::size_t>(Seer::exact)] =
      sights.first.empty() ? Sight::silent : Sight::seen;
  float_run(in_regime(planted.run, Regime::f32), mutant, memo, sights);
  return sights;
}

FalseAlarms false_alarms(const Case& c, OracleMemo& memo) {
  Case rounded = c;
  rounded.numerics.act = rounded.numerics.wire = rounded.numerics.acc = NumberFormat::bf16;
  if (rounded.numerics.weights == NumberFormat::f32) rounded.numerics.weights = NumberFormat::bf16;
  rounded.numerics.regime = Regime::f32;
  Case whole = rounded;
  whole.numerics = {};
  whole.numerics.weights = rounded.numerics.weights;
  const auto right = memo.get(make_plan(whole));
  const RunPlan plan = make_plan(rounded);
  FirstBound bounds(plan);
  Others others(right->answer, plan.source_case.model);
  Observers both({&bounds, &others});
  Findings findings;
  run_inference(plan, right->weights, right->prompt, calling_thread(), &both, {}, {}, &findings);
  return {others.finish(findings.all().empty()), bounds.found()};
}

}  // namespace shardproof::faults
