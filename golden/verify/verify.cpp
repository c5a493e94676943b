#include "golden/verify/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "engine/run/inference.h"
#include "engine/run/memory.h"
#include "golden/compare/case_padding.h"
#include "golden/judge/judge.h"
#include "golden/verify/bounds_judge.h"
#include "golden/verify/degenerate.h"
#include "golden/verify/evidence.h"
#include "golden/verify/field_run.h"
#include "golden/verify/observers.h"
#include "golden/verify/scalar_judge.h"
#include "weights/base/error.h"
#include "weights/base/memory.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

/// Forwards a run to another observer, and calls fault hooks. An error of theirs is the caller's,
/// not the case's: it ends the run and is kept.
class Guarded : public Observer {
 public:
  struct Failed {};  // thrown in place of the error; not a std::exception

  explicit Guarded(Observer* guarded) : guarded_(guarded) {}

  /// Returns guarded hooks; `hooks` and this must outlive them.
  FaultHooks faults(const FaultHooks& hooks) {
    return {.plan = hook(hooks.plan),
            .crossing = hook(hooks.crossing),
            .computed = hook(hooks.computed),
            .result = hook(hooks.result),
            .weight = hook(hooks.weight)};
  }

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    guard([&] { guarded_->observe(scope, program, op, declared, value); });
  }
  void moved(const Scope& scope, const Program& program, const Op& op,
             std::int64_t elements) override {
    guard([&] { guarded_->moved(scope, program, op, elements); });
  }
  void crossed(const Scope& scope, const Program& program, const ValueDecl& declared,
               std::int64_t elements) override {
    guard([&] { guarded_->crossed(scope, program, declared, elements); });
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  template <class Call>
  void guard(Call&& call) {
    try {
      call();
    } catch (...) {
      error_ = std::current_exception();
      throw Failed{};
    }
  }

  template <class... At>
  std::function<void(At...)> hook(const std::function<void(At...)>& given) {
    if (!given) return nullptr;
    return [this, &given](At... at) { guard([&] { given(at...); }); };
  }

  Observer* guarded_;
  std::exception_ptr error_;
};

/// Runs under a judge, and under the options' observer if the run is the case's own.
template <class JudgeOfRun>
Judgement judged(const RunPlan& plan, const OracleMemo::Known& known, const VerifyOptions& options,
                 bool own, Findings& findings, JudgeOfRun&& judge) {
  Threads threads(options.threads);
  judge.use(threads);
  Observers both({options.observer, &judge});
  Observer* watching = own && options.observer != nullptr ? static_cast<Observer*>(&both) : &judge;
  try {
    const IntTensor generated = run_inference(plan, known.weights, known.prompt, threads, watching,
                                              options.hazards, options.faults, &findings);
    if (!findings.ended()) judge.observe_generated(generated);
  } catch (const std::exception&) {
    // Earlier findings decide; without any the exception does.
    if (findings.all().empty()) throw;
  }
  return judge.finish();
}

/// Judges an f32 run twice: its bits by the scalar model, its ops by bounds from their operands.
class FloatJudge : public Observer {
 public:
  FloatJudge(const RunPlan& plan, const OracleMemo::Known& known, Findings& findings)
      : scalar_(plan, known.stored, known.prompt, known.answer, findings),
        bounds_(plan, findings),
        findings_(findings) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    scalar_.observe(scope, program, op, declared, value);
    if (!findings_.ended()) bounds_.observe(scope, program, op, declared, value);
  }
  void use(Threads& threads) {
    scalar_.use(threads);
    bounds_.use(threads);
  }
  void observe_generated(const IntTensor& generated) { scalar_.observe_generated(generated); }
  Judgement finish() {
    Judgement judgement = scalar_.finish();
    judgement.bounds = bounds_.tightness();
    return judgement;
  }

 private:
  ScalarJudge scalar_;
  BoundsJudge bounds_;
  Findings& findings_;
};

/// Ends a run at one step, after observers have seen that step.
class Until : public Observer {
 public:
  Until(std::string step, Findings& findings) : step_(std::move(step)), findings_(findings) {}
  void observe(const Scope& scope, const Program& program, const Op*, const ValueDecl& declared,
               const Sharded&) override {
    if (scope.step(program, declared.name) == step_) findings_.end();
  }

 private:
  std::string step_;
  Findings& findings_;
};

/// Shows the options' observer an f32 run to the step where the exact one went wrong, or the end.
void show(const RunPlan& plan, const OracleMemo::Known& known, const VerifyOptions& options,
          const Judgement& layouts) {
  Threads threads(options.threads);
  Findings findings;  // discarded: further errors on the way are not reported
  Until until(layouts.difference() != nullptr ? layouts.difference()->step : "", findings);
  Observers both({options.observer, &until});
  try {
    run_inference(plan, known.weights, known.prompt, threads, &both, options.hazards,
                  options.faults, &findings);
  } catch (const std::exception&) {
    // The run may end before the wrong step.
  }
}

/// Adds notes on what an equal run's passes leave unproved; not judged if a user's layer is
/// unproved as decode.
void add_notes(Judgement& judgement, const RunPlan& plan) {
  if (judgement.verdict != Verdict::equal) return;
  for (std::string& note : notes_of_passes(plan)) judgement.notes.push_back(std::move(note));
  if (has_program(plan.source_case)) judgement.missing = missing_of_decode(plan);
  if (!judgement.missing.empty()) judgement.verdict = Verdict::not_judged;
}

/// Returns the case's rounding that the field leaves out: ", but for ...".
std::string left_out(const Numerics& n) {
  std::vector<std::string_view> keys;
  if (n.acc == NumberFormat::bf16) keys.emplace_back("acc=bf16");
  if (n.wire == NumberFormat::bf16) keys.emplace_back("wire=bf16");
  return keys.empty() ? "" : fmt::format(", but for what {} rounds", fmt::join(keys, " and "));
}

/// Returns the joint meaning of equal or different bits and formulas (docs/field.md section 3).
std::string reading(const Numerics& numerics, Verdict bits, const Judgement& formulas) {
  const bool same_bits = bits == Verdict::equal;
  const bool same_formula = formulas.verdict == Verdict::equal;
  if (same_bits && same_formula)
    return fmt::format("equal bits on this input; {}{} (seed={})", formulas.field->to_string(),
                       left_out(numerics), formulas.field->seed);
  if (same_formula)
    return "different bits, but the same formula: no fault in the formula as the field ran it; a "
           "rounding point, a tie, overflow, or code that the field does not run (docs/field.md)";
  if (same_bits)
    return "equal bits, but another formula: this data hides a fault, or it is an identity that "
           "the field does not know (docs/field.md)";
  return "different bits and another formula, up to the identities that the field does not know "
         "(docs/field.md)";
}

/// Returns true if a case is not judged only because of its weights. The field draws its numbers
/// and does not need them, but it shares the gaps of the passes.
bool by_its_data(const Judgement& own, const RunPlan& plan, OracleMemo& memo,
                 const VerifyOptions& options) {
  const auto known = memo.get(plan, options.weights, options.threads);
  const std::string missing = evidence_of_weights(plan, known->stored).missing;
  return !missing.empty() && own.missing == missing &&
         !(has_program(plan.source_case) && !missing_of_decode(plan).empty());
}

/// Combines the verdict of the case's own regime with that of the field.
Judgement with_field(Judgement own, const RunPlan& plan, OracleMemo& memo,
                     const VerifyOptions& options) {
  const bool shows_little =
      own.verdict == Verdict::not_judged && by_its_data(own, plan, memo, options);
  if (own.verdict != Verdict::equal && own.verdict != Verdict::different && !shows_little)
    return own;
  VerifyOptions quiet = options;
  quiet.observer = nullptr;  // it sees only the case's own run
  const Judgement formulas = judge_in_field(plan, memo, quiet);
  if (formulas.verdict == Verdict::refused || formulas.verdict == Verdict::not_judged) {
    own.reading = "not judged in the field regime: " + formulas.reason();
    if (shows_little) return own;
    if (own.verdict == Verdict::equal) own.missing = own.reading, own.verdict = Verdict::not_judged;
    return own;
  }
  if (shows_little) {
    own.notes.push_back("equal bits on this input show little: " + own.missing);
    own.missing.clear();
    own.verdict = Verdict::equal;
  }
  own.reading = reading(plan.source_case.numerics, own.verdict, formulas);
  own.field = formulas.field;
  own.tensors += formulas.tensors;
  own.elements += formulas.elements;
  if (formulas.verdict == Verdict::different) {
    own.verdict = formulas.verdict;
    // Findings of the case's own regime come first; usually they are about the same steps.
    if (own.findings.empty())
      own.findings = formulas.findings;
    else if (options.until == Findings::Until::all)
      own.findings.push_back(formulas.findings.at(0));
  }
  return own;
}

/// Runs and judges a plan whose programs are type-checked.
Judgement run_judged(const RunPlan& plan, OracleMemo& memo, const VerifyOptions& options) {
  const Case& c = plan.source_case;
  if (c.numerics.regime == Regime::field) {
    Judgement judgement = judge_in_field(plan, memo, options);
    if (options.weights != nullptr && judgement.verdict == Verdict::equal)
      judgement.notes.emplace_back(
          "regime=field draws its numbers: those of the weights file have no effect");
    add_notes(judgement, plan);
    return judgement;
  }
  if (options.also_field) {
    VerifyOptions own = options;
    own.also_field = false;
    Judgement judgement = run_judged(plan, memo, own);
    if (has_meaning_in_field(c.model)) return with_field(std::move(judgement), plan, memo, options);
    judgement.notes.emplace_back(
        "not judged in the field regime: its numbers have no order, which the text asks for");
    return judgement;
  }
  const auto known = memo.get(plan, options.weights, options.threads);
  const bool f32_wanted = c.numerics.regime == Regime::f32;
  RunPlan exact = plan;
  exact.source_case.numerics.regime = Regime::exact;
  Findings of_layouts(options.until);
  const Judgement layouts = judged(exact, *known, options, !f32_wanted, of_layouts,
                                   Judge(known->answer, known->stored, of_layouts, dim_padding(c)));
  if (layouts.verdict != Verdict::equal) {
    if (f32_wanted && options.observer != nullptr) show(plan, *known, options, layouts);
    return layouts;
  }
  Judgement judgement = layouts;
  if (f32_wanted) {
    Findings findings(options.until);
    judgement = judged(plan, *known, options, true, findings, FloatJudge(plan, *known, findings));
    judgement.tensors += layouts.tensors;
    judgement.elements += layouts.elements;
    if (judgement.verdict != Verdict::equal) return judgement;
  }
  Evidence evidence = evidence_of_weights(plan, known->stored);
  if (has_program(c) && evidence.missing.empty()) evidence.missing = missing_of_decode(plan);
  judgement.notes = std::move(evidence.notes);
  for (auto&& notes :
       {notes_of_data(known->stored, known->answer, evidence.noted), notes_of_passes(plan)})
    judgement.notes.insert(judgement.notes.end(), notes.begin(), notes.end());
  judgement.missing = evidence.missing;
  if (options.weights == nullptr)
    judgement.from_plain = from_plain(plan, known->answer, memo, options.threads);
  if (!evidence.missing.empty()) judgement.verdict = Verdict::not_judged;
  return judgement;
}

Judgement found(std::vector<Finding> findings) {
  Judgement judgement;
  judgement.verdict = verdict_of(findings, Verdict::not_judged);
  judgement.findings = std::move(findings);
  return judgement;
}

}  // namespace

void require_memory(const TypedPlan& typed, int at_once, bool also_field, Replicas replicas) {
  // The estimate needs types. verify_plan reports a built program without them.
  if (!typed.types) return;
  double bytes = cost::estimated_bytes(typed.plan, *typed.types, replicas);
  if (also_field) {
    RunPlan in_field = typed.plan;
    in_field.source_case.numerics.regime = Regime::field;
    bytes = std::max(bytes, cost::estimated_bytes(in_field, *typed.types, replicas));
  }
  require_memory(bytes * at_once);
}

Judgement ended_by(const std::exception_ptr& error) {
  Finding of_run{.detector = Detector::run};
  try {
    std::rethrow_exception(error);
  } catch (const Error& what) {
    of_run.label = what.label();
    of_run.message = what.message();
  } catch (const std::bad_alloc&) {
    of_run.label = "memory_c1";
    of_run.message = "out of memory";
  } catch (const std::exception& what) {
    of_run.message = what.what();
  } catch (...) {
    of_run.message = "an exception of no known type";
  }
  return found({of_run});
}

Judgement verify_case(const Case& c, OracleMemo& memo, const VerifyOptions& options) {
  return verify_plan(make_typed_plan(c, options.until), memo, options);
}

namespace {

Judgement verify_typed(const TypedPlan& typed, OracleMemo& memo, const VerifyOptions& options) {
  require_memory(typed, options.at_once, options.also_field, options.hazards.placed());
  Guarded watching(options.observer);
  VerifyOptions guarded = options;
  if (options.observer != nullptr) guarded.observer = &watching;
  guarded.faults = watching.faults(options.faults);
  try {
    if (!typed.findings.empty()) return found(typed.findings);
    return run_judged(typed.plan, memo, guarded);
  } catch (const Guarded::Failed&) {
    watching.rethrow();
    throw;
  } catch (const Error& error) {
    // Only the run shows that a program asks for a value that the model lacks.
    if (has_program(typed.plan.source_case) && error.label() == "judge_c1") throw;
    return ended_by(std::current_exception());
  } catch (...) {
    return ended_by(std::current_exception());
  }
}

}  // namespace

Judgement verify_plan(const TypedPlan& typed, OracleMemo& memo, const VerifyOptions& options) {
  if (!typed.types && typed.findings.empty())
    throw std::logic_error("verify_plan: the plan's types were not checked");
  return verify_typed(typed, memo, options);
}

Judgement verify_unchecked(RunPlan plan, OracleMemo& memo, const VerifyOptions& options) {
  return verify_typed({std::move(plan), {}, {}}, memo, options);
}

}  // namespace shardproof
