#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/plan/plan.h"

namespace shardproof::cost {

/// The choices on one torus with one weight type.
class TorusSearch {
 public:
  TorusSearch(const PlanRequest& request, double parameters, const Torus& torus,
              NumberFormat weights);

  void run();
  std::vector<Choice> choices;
  std::vector<LeftOut> left_out;

 private:
  /// Decode candidates that keep the same weights resident in the same layouts.
  struct Resting {
    std::map<std::string, double> weights;
    std::vector<Candidate> decodes;
  };

  /// Adds choices with one phase each; every strategy gets the fewest heads that it divides.
  void each_phase(std::int64_t batch);
  /// Adds choices with both phases on the same chips, the model padded to `heads`.
  void both_phases(std::int64_t heads, std::int64_t batch);
  /// Returns the decode candidates that fit the memory. With `least`, a strategy is tried only at
  /// its fewest padded heads; with `noted`, rejected strategies are recorded in left_out.
  std::vector<Candidate> decodes(std::int64_t heads, std::int64_t batch, bool least, bool noted);
  std::optional<Candidate> prefill(const Strategy& strategy, std::int64_t heads, std::int64_t batch,
                                   const std::map<std::string, double>& other);
  void leave_out(const Strategy& strategy, Phase phase, std::int64_t batch, std::string why,
                 const Candidate* needs = nullptr);
  bool takes_heads(const Strategy& strategy, std::int64_t heads, bool least) const;
  bool fits(const Candidate& candidate) const;

  const PlanRequest& request_;
  double parameters_;
  Torus torus_;
  NumberFormat weights_;
  std::map<std::int64_t, Evaluator> evaluators_;  // by heads
};

}  // namespace shardproof::cost
