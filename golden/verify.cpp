#include "golden/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "golden/evidence.h"
#include "golden/observers.h"
#include "golden/scalar/judge.h"
#include "weights/error.h"
#include "weights/generator.h"
#include "weights/memory.h"

namespace shardproof {
namespace {

/// What the oracle's answer depends on.
std::string oracle_key(const Case& c, const Weights* given) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", fmt::ptr(given), print_model(c.model),
                     to_string(c.model.block), to_string(c.numerics.weights),
                     to_string(c.numerics.act), c.batch, c.prompt, c.chunk, c.gen, c.seed);
}

std::shared_ptr<const OracleMemo::Known> ask_oracle(const Case& c, const Weights* given) {
  const Weights weights = given != nullptr ? *given : generate_weights(c.model, c.seed);
  IntTensor prompt = generate_prompt(c.model, c.seed, c.batch, c.prompt);
  Numerics numerics = c.numerics;
  numerics.regime = Regime::exact;  // of an f32 case the oracle is what drift is measured from
  oracle::Answer answer = oracle::run(weights, {numerics, prompt, c.chunk, c.gen});
  return std::make_shared<const OracleMemo::Known>(OracleMemo::Known{
      stored_as(weights, c.numerics.weights), std::move(prompt), std::move(answer)});
}

}  // namespace

std::shared_ptr<const OracleMemo::Known> OracleMemo::get(const Case& c, const Weights* given) {
  const std::string key = oracle_key(c, given);
  std::promise<std::shared_ptr<const Known>> promise;
  std::shared_future<std::shared_ptr<const Known>> answer = promise.get_future().share();
  bool asked = false;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return entry.first == key; });
    if (at != entries_.end()) {
      asked = true;
      answer = at->second;
      entries_.splice(entries_.begin(), entries_, at);
    } else {
      entries_.emplace_front(key, answer);
      if (entries_.size() > kKept) entries_.pop_back();
    }
  }
  if (asked) return answer.get();
  try {
    promise.set_value(ask_oracle(c, given));
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
  return answer.get();
}

namespace {

void require_memory(const Inference& inference, const InferencePrograms& programs, int at_once) {
  double bytes = 0.0;
  try {
    bytes = estimated_bytes(inference, programs);
  } catch (const Error&) {
    // The estimate needs types. A built program without them is verify_case's to report.
    if (inference.layers.any()) throw;
  }
  shardproof::require_memory(bytes * at_once);
}

/// Shows another observer what it sees. An error of that one is the caller's, not the case's: it
/// ends the run and is kept.
class Guarded : public Observer {
 public:
  struct Failed {};  // thrown in place of the error, and no std::exception

  explicit Guarded(Observer* guarded) : guarded_(guarded) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const Result& declared,
               const Sharded& value) override {
    guard([&] { guarded_->observe(scope, program, op, declared, value); });
  }
  void moved(const Scope& scope, const Program& program, const Op& op,
             std::int64_t elements) override {
    guard([&] { guarded_->moved(scope, program, op, elements); });
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

  Observer* guarded_;
  std::exception_ptr error_;
};

/// A run under a judge, and under the options' observer if it is the case's own.
template <class JudgeOfRun>
Judgement judged(const Inference& inference, const InferencePrograms& programs,
                 const OracleMemo::Known& known, const VerifyOptions& options, bool own,
                 JudgeOfRun&& judge) {
  Threads threads(options.threads);
  Observers both({options.observer, &judge});
  Observer* watching = own && options.observer != nullptr ? static_cast<Observer*>(&both) : &judge;
  try {
    judge.observe_generated(run_inference(inference, programs, known.weights, known.prompt, threads,
                                          watching, options.hazards, options.faults));
  } catch (const Judge::Stop&) {
    // The judgement holds the difference.
  }
  return judge.finish();
}

/// Ends a run at one step, having shown it that step.
class Until : public Observer {
 public:
  explicit Until(std::string step) : step_(std::move(step)) {}
  void observe(const Scope& scope, const Program& program, const Op*, const Result& declared,
               const Sharded&) override {
    if (scope.step(program, declared.name) == step_) throw Judge::Stop{};
  }

 private:
  std::string step_;
};

/// Shows the options' observer a run of the f32 regime as far as the step where the exact one of
/// the same programs went wrong, or to its end if it never did.
void show(const Inference& inference, const InferencePrograms& programs,
          const OracleMemo::Known& known, const VerifyOptions& options, const Judgement& layouts) {
  Threads threads(options.threads);
  Until until(layouts.difference ? layouts.difference->step : "");
  Observers both({options.observer, &until});
  try {
    run_inference(inference, programs, known.weights, known.prompt, threads, &both, options.hazards,
                  options.faults);
  } catch (const Judge::Stop&) {
  } catch (const std::exception&) {
    // What is shown is a run known to be wrong; it may end before the step that was found wrong.
  }
}

}  // namespace

namespace {

/// A legal case with its programs, type-checked.
Judgement run_judged(const Case& c, const Inference& inference, const InferencePrograms& programs,
                     OracleMemo& memo, const VerifyOptions& options) {
  const auto known = memo.get(c, options.weights);
  const bool f32_wanted = c.numerics.regime == Regime::f32;
  Inference exact = inference;
  exact.numerics.regime = Regime::exact;
  const Judgement layouts =
      judged(exact, programs, *known, options, !f32_wanted, Judge(known->answer, known->weights));
  if (layouts.verdict != Verdict::equal) {
    if (f32_wanted && options.observer != nullptr)
      show(inference, programs, *known, options, layouts);
    return layouts;
  }
  Judgement judgement = layouts;
  if (f32_wanted) {
    judgement =
        judged(inference, programs, *known, options, true,
               ScalarJudge(inference, programs, known->weights, known->prompt, known->answer));
    judgement.tensors += layouts.tensors;
    judgement.elements += layouts.elements;
    if (judgement.verdict != Verdict::equal) return judgement;
  }
  Evidence evidence = evidence_of_weights(inference, programs, known->weights);
  if (options.layers.any() && evidence.missing.empty())
    evidence.missing = missing_of_decode(inference);
  judgement.notes = std::move(evidence.notes);
  for (std::string& note : notes_of_passes(inference)) judgement.notes.push_back(std::move(note));
  if (!evidence.missing.empty()) {
    judgement.verdict = Verdict::not_judged;
    judgement.reason = evidence.missing;
  }
  return judgement;
}

Judgement detected(std::string_view detector, const std::exception& what) {
  Judgement judgement;
  judgement.verdict = Verdict::different;
  judgement.detector = detector;
  judgement.reason = what.what();
  return judgement;
}

}  // namespace

void require_memory(const Case& c, int at_once, const GivenLayers& layers) {
  const Inference inference = c.inference(layers);
  require_memory(inference, build_programs(inference), at_once);
}

Judgement ended_by(const std::exception_ptr& error) {
  Judgement refused;
  refused.verdict = Verdict::refused;
  try {
    std::rethrow_exception(error);
  } catch (const Error& what) {
    if (what.label() == "hazard_replicas") return detected("replicas", what);
    // Only where the type check is off is it the run that finds what does not fit.
    if (what.label() == "engine_types" || what.label() == "sharded_c1")
      return detected("types", what);
    refused.reason = what.what();
  } catch (const std::bad_alloc&) {
    refused.reason = "memory_c1: out of memory";
  } catch (const std::exception& what) {
    refused.reason = std::string("internal error: ") + what.what();
  } catch (...) {
    refused.reason = "internal error: an exception of no known type";
  }
  return refused;
}

Judgement verify_case(const Case& c, OracleMemo& memo, const VerifyOptions& options) {
  validate(c.model);
  const Inference inference = c.inference(options.layers);
  require_legal(inference);
  InferencePrograms programs = build_programs(inference);
  require_memory(inference, programs, options.at_once);
  // A user's program is the caller's to mend; in a built one the types find our mistake.
  if (options.layers.any() && options.check_types) check(programs, inference);
  Guarded watching(options.observer);
  VerifyOptions guarded = options;
  if (options.observer != nullptr) guarded.observer = &watching;
  try {
    if (options.mutate) options.mutate(programs);
    if (options.check_types) {
      try {
        check(programs, inference);
      } catch (const Error& error) {
        return detected("types", error);
      }
    }
    return run_judged(c, inference, programs, memo, guarded);
  } catch (const Guarded::Failed&) {
    watching.rethrow();
    throw;
  } catch (const Error& error) {
    // Only the run shows that a program asks for what the model has not.
    if (options.layers.any() && error.label() == "judge_c1") throw;
    return ended_by(std::current_exception());
  } catch (...) {
    return ended_by(std::current_exception());
  }
}

}  // namespace shardproof
