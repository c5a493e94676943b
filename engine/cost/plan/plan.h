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
/// Which phases a plan is of: one alone, both one after the other on the same chips, or each for
/// itself, so that a choice is of either.
enum class PlanPhase { prefill, decode, both, each };

/// What a plan chooses among and by.
struct PlanRequest {
  ModelConfig model;
  Chip chip;
  std::vector<Torus> tori;
  std::vector<std::int64_t> batches{1};  ///< rows
  std::int64_t prompt = 2048;            ///< tokens of a row that the prefill takes
  std::int64_t context = 2048;           ///< positions in the caches after the last step
  std::int64_t gen = 1;                  ///< decode steps
  std::vector<WeightType> weights{WeightType::bf16};
  PlanPhase phase = PlanPhase::both;
  Goal goal = Goal::latency;
  std::optional<double> latency;  ///< seconds, the most; of Choice::latency
  bool pad_heads = true;          ///< else a strategy that does not divide the heads is left out
  bool alone = false;             ///< chips hold the weights of this phase's strategy only
  Volumes volumes = Volumes::full;
  std::vector<Strategy> strategies;  ///< with tables
  int threads = 1;
  std::function<void()> progress;  ///< called after each of plan_parts(), by any thread
};

/// What one may choose: a phase's candidate, or those of both on the same chips.
struct Choice {
  std::optional<Candidate> prefill, decode;
  /// Of a prefill alone: the decode whose weights rest on the same chips.
  std::optional<Strategy> beside;
  double latency =
      0.0;            ///< seconds of a prefill, of a decode step, or of the prefill and all steps
  double cost = 0.0;  ///< chip-seconds a token

  const Candidate& main() const { return prefill ? *prefill : *decode; }
  const Torus& torus() const { return main().torus; }
  WeightType weights() const { return main().weights; }
  std::int64_t batch() const { return main().batch; }
  double lower() const { return sum(&Candidate::lower); }
  double additive() const { return sum(&Candidate::additive); }
  /// Bytes of one chip in the phase that needs more.
  double memory() const;
  std::int64_t steps = 1;  ///< decode steps of both phases together

 private:
  double sum(double Candidate::*what) const;
};

/// What was left out, and why.
struct LeftOut {
  Strategy strategy;
  Torus torus;
  WeightType weights;
  Phase phase;
  std::int64_t batch;
  std::string why;
  double memory = 0.0;    ///< bytes that it needs, where they are too many; else 0
  double estimate = 0.0;  ///< seconds that it would take, likewise
};

struct Plan {
  std::vector<Choice> choices;  ///< that fit, best first, whatever latency is asked for
  std::vector<LeftOut> left_out;
  double parameters = 0.0;  ///< N
  std::size_t met = 0;      ///< how many of `choices` have the latency that is asked for: the first
};

/// How many parts of the search report progress.
std::int64_t plan_parts(const PlanRequest& request);

/// All choices, ranked by the goal: the least latency or cost; where a latency is asked for those
/// that meet it first. Of equals the one whose strategy ships first.
/// Where both phases share chips, weights that do not rest alike are there twice.
Plan make_plan(const PlanRequest& request);

/// Throws Error: "plan_c1" (nothing fits: what comes nearest, and the fewest chips that hold it),
/// "plan_c2" (nothing meets the latency: the least that there is), "plan_c3" (no strategy divides
/// the model and the batch: why not, and the nearest slice and the nearest batch that are
/// feasible).
void require_choice(const Plan& plan, const PlanRequest& request);

}  // namespace shardproof::cost
