#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/cost/chip/chip.h"
#include "engine/cost/plan/candidate.h"
#include "engine/cost/work/work.h"

namespace shardproof::cost {

/// How a plan counts traffic and work. full: everything the engine's programs do. paper: the counts
/// of the paper's section 2 and its formulas of section 3.2, which are 2N FLOPs a token, weights
/// and caches read once, and the FFN's volumes (paper_volumes.h).
enum class Volumes { full, paper };

/// Returns the reason why the strategy has no pass with these rows and positions: a dim that its
/// blocks do not divide, or positions sharded in a decode. Returns "" if it has one.
std::string why_no_pass(const Strategy& strategy, const ModelConfig& placed, const Torus& torus,
                        const Pass& pass);

/// Computes candidates on one torus, with one weight type and the model as padded for the chips.
/// Builds each strategy's formulas once.
class Evaluator {
 public:
  struct Setting {
    ModelConfig placed;
    double parameters = 0.0;  ///< N, of the model itself
    Chip chip;
    Torus torus;
    NumberFormat weights = NumberFormat::bf16;
    Volumes volumes = Volumes::full;
  };
  explicit Evaluator(Setting setting);

  /// Returns the candidate of a prefill of `batch` rows of `prompt` tokens each, `rows` of them per
  /// pass. Embedding and head process a few rows at a time, as many as the strategy has blocks of
  /// the batch, so their memory never forces smaller passes.
  Candidate prefill(const Strategy& strategy, std::int64_t batch, std::int64_t rows,
                    std::int64_t prompt);
  /// Returns the candidate of one of `gen` decode steps, at their mean length; after the last one
  /// the caches have `context` positions.
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
