#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/chip/chip.h"
#include "engine/cost/plan/candidate.h"
#include "engine/cost/plan/evaluator.h"
#include "weights/base/error.h"

namespace shardproof::cost {

enum class Goal { latency, cost };
/// The phases that a plan covers: one alone, both in sequence on the same chips, or each
/// independently, so that every choice covers one phase.
enum class PlanPhase { prefill, decode, both, each };

/// The search space and the objective of a plan.
struct PlanRequest {
  ModelConfig model;
  Chip chip;
  std::vector<Torus> tori;
  std::vector<std::int64_t> batches{1};  ///< rows
  std::int64_t prompt = 2048;            ///< tokens per row in the prefill
  std::int64_t context = 2048;           ///< positions in the caches after the last step
  std::int64_t gen = 1;                  ///< decode steps
  std::vector<NumberFormat> weights{NumberFormat::bf16};
  PlanPhase phase = PlanPhase::both;
  Goal goal = Goal::latency;
  std::optional<double> latency;  ///< limit on Choice::latency, in seconds
  bool pad_heads = true;  ///< otherwise strategies that do not divide the heads are left out
  bool alone = false;     ///< chips hold only this phase's weights
  Volumes volumes = Volumes::full;
  std::vector<Strategy> strategies;  ///< the strategies to search, with tables
  int threads = 1;
  std::function<void()> progress;  ///< called after each of plan_parts(), by any thread
};

/// One option of a plan: a candidate for one phase, or one for each phase on the same chips.
struct Choice {
  std::optional<Candidate> prefill, decode;
  /// For a prefill alone: the decode strategy whose weights are resident on the same chips.
  std::optional<Strategy> beside;
  double latency =
      0.0;            ///< seconds of a prefill, of a decode step, or of the prefill and all steps
  double cost = 0.0;  ///< chip-seconds a token

  const Candidate& main() const { return prefill ? *prefill : *decode; }
  const Torus& torus() const { return main().torus; }
  NumberFormat weights() const { return main().weights; }
  std::int64_t batch() const { return main().batch; }
  double lower() const { return sum(&Candidate::lower); }
  double additive() const { return sum(&Candidate::additive); }
  /// Bytes of one chip in the phase that needs more memory.
  double memory() const;
  std::int64_t steps = 1;  ///< decode steps of both phases together

 private:
  double sum(double Candidate::*what) const;
};

/// A strategy that was left out, and the reason.
struct LeftOut {
  Strategy strategy;
  Torus torus;
  NumberFormat weights;
  Phase phase;
  std::int64_t batch;
  std::string why;
  double memory = 0.0;    ///< bytes needed, if left out for memory; otherwise 0
  double estimate = 0.0;  ///< seconds it would take, if left out for memory; otherwise 0
};

struct Plan {
  std::vector<Choice> choices;  ///< options that fit, best first, whatever the latency limit
  std::vector<LeftOut> left_out;
  double parameters = 0.0;  ///< N
  std::size_t met = 0;      ///< the first `met` of `choices` meet the latency limit
};

/// Returns how many parts of the search report progress.
std::int64_t plan_parts(const PlanRequest& request);

/// Returns all choices, ranked by the goal (least latency or least cost); if a latency limit is
/// given, those that meet it come first. Ties go to the strategy that is listed first. If both
/// phases share chips, weights that they keep in different layouts are resident twice.
Plan make_plan(const PlanRequest& request);

/// Throws Error: "plan_c1" (nothing fits; the message names the nearest option and the fewest chips
/// that hold it), "plan_c2" (nothing meets the latency; the message names the least achievable),
/// "plan_c3" (no strategy divides the model and the batch; the message names the reason, and the
/// nearest feasible slice and batch).
void require_choice(const Plan& plan, const PlanRequest& request);

}  // namespace shardproof::cost
