#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/cost/chip/chip.h"
#include "engine/cost/plan/candidate.h"
#include "engine/cost/work/work.h"

namespace shardproof::cost {

/// What a plan takes for the bytes that chips send, and with it the rest of the model: all that
/// the engine's programs do, or what the paper's section 2 and its formulas of section 3.2 count,
/// 2N FLOPs a token, weights and caches read once, and the FFN's volumes (paper_volumes.h).
enum class Volumes { full, paper };

/// Why the strategy has no pass of so many rows and positions: a dim that its blocks do not divide,
/// or positions sharded in a decode. Empty if it has one.
std::string why_no_pass(const Strategy& strategy, const ModelConfig& placed, const Torus& torus,
                        const Pass& pass);

/// Works out candidates on one torus, with one weight type and the model as chips hold it. Makes
/// the formulas of each strategy once.
class Evaluator {
 public:
  struct Setting {
    ModelConfig placed;
    double parameters = 0.0;  ///< N, of the model itself
    Chip chip;
    Torus torus;
    WeightType weights = WeightType::bf16;
    Volumes volumes = Volumes::full;
  };
  explicit Evaluator(Setting setting) : setting_(std::move(setting)) {}

  /// A prefill of `batch` rows, each of `prompt` tokens, `rows` of them a pass. Embedding and head
  /// take them a few at a time, as many as the strategy's blocks of the batch are: what they hold
  /// is no reason for smaller passes.
  Candidate prefill(const Strategy& strategy, std::int64_t batch, std::int64_t rows,
                    std::int64_t prompt);
  /// A step of `gen` that end with caches of `context` positions, at their mean length.
  Candidate decode(const Strategy& strategy, std::int64_t batch, std::int64_t context,
                   std::int64_t gen);

 private:
  const WorkFormulas& formulas(const Strategy& strategy, const Pass& pass);
  Candidate candidate(const Strategy& strategy, const Pass& pass, std::int64_t batch);
  Bounds bounds_by_paper(const Candidate& candidate, const Work& work) const;

  Setting setting_;
  std::map<std::string, std::vector<WorkFormulas>> made_;  // by strategy and phase
};

}  // namespace shardproof::cost
