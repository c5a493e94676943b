#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/plan.h"

namespace shardproof::cost {

/// The choices on one torus with one weight type.
class TorusSearch {
 public:
  TorusSearch(const PlanRequest& request, double parameters, const Torus& torus,
              WeightType weights);

  void run();
  std::vector<Choice> choices;
  std::vector<LeftOut> left_out;

 private:
  /// Strategies whose phase rests its weights alike.
  struct Resting {
    std::map<std::string, double> weights;
    std::vector<Candidate> decodes;
  };

  void with_heads(std::int64_t heads, std::int64_t batch);
  void prefills(std::int64_t heads, std::int64_t batch);
  /// The fastest decode, of so many heads if there is one.
  std::optional<Candidate> decode_beside(std::int64_t heads, std::int64_t batch);
  std::vector<Candidate> decodes(Evaluator& evaluator, const ModelConfig& placed,
                                 std::int64_t batch, bool for_themselves);
  std::optional<Candidate> prefill(Evaluator& evaluator, const ModelConfig& placed,
                                   const Strategy& strategy, std::int64_t batch,
                                   const std::map<std::string, double>& other);
  void pair_up(Evaluator& evaluator, const ModelConfig& placed, std::int64_t batch,
               const std::vector<Candidate>& decodes);
  void leave_out(const Strategy& strategy, Phase phase, std::int64_t batch, std::string why,
                 const Candidate* needs = nullptr);
  bool takes_heads(const Strategy& strategy, std::int64_t heads, bool least) const;
  bool fits(const Candidate& candidate) const;

  const PlanRequest& request_;
  double parameters_;
  Torus torus_;
  WeightType weights_;
  std::map<std::int64_t, Evaluator> evaluators_;  // by heads
};

}  // namespace shardproof::cost
