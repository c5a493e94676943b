#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/cost/formulas/pass.h"
#include "engine/layout/torus.h"
#include "engine/program/ops.h"
#include "engine/strategies/strategy.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// What one collective of a program moves each time that it runs.
struct Traffic {
  std::string step;  ///< the name of its result in the program
  OpKind kind{};
  Axes axes;                  ///< of its group
  int group = 1;              ///< K, the product of their sizes
  int rings = 1;              ///< of its axes those of more than one chip, at least 1
  bool weight = false;        ///< it moves a weight, not an activation
  double buffer_bytes = 0.0;  ///< D of paper section A.1: the larger of its buffers on one chip
  double sent_bytes = 0.0;    ///< by one chip: D(K−1)/K, of an all_reduce twice that
  double elements = 0.0;      ///< sent by one chip
  int times = 1;              ///< how often D is sent: 2 of an all_reduce, which is two collectives
  int hops = 0;  ///< steps of a ring one after another: K − 1, of an all_reduce twice
};

/// The axes of more than one chip, at least 1: an axis of one chip has no links to send over.
int rings_of(const Axes& axes, const Torus& torus);

/// What one chip does and holds for one part of a pass: a layer, or the two ends of the model.
struct PartWork {
  double matmul_flops = 0.0;     ///< two a multiply-add, of W matrices and of the unembedding
  double attention_flops = 0.0;  ///< of scores and of the values that they weigh; 4·B·L·(M+L)·H·Q
  /// Of both what no run under these layouts does without: W matrices, the unembedding, and of
  /// attention the scores that the causal mask leaves (Pass::seen); no sums of norms. Where chips
  /// have blocks of L or M, their mean.
  double needed_flops = 0.0;
  double weight_bytes = 0.0;  ///< of the weights that rest on the chip
  /// Of weights that products read: those that rest on the chip, or what was gathered of them.
  double weight_reads = 0.0;
  double cache_bytes = 0.0;       ///< of K and V for M + L positions
  double cache_reads = 0.0;       ///< what attention reads of them
  double activation_bytes = 0.0;  ///< of values other than weights and caches, written and read
  double live_bytes = 0.0;        ///< the most that values made by the program hold at one time
  std::vector<Traffic> traffic;

  double flops() const { return matmul_flops + attention_flops; }
  double sent_bytes() const;
};

/// What one chip does and holds in one pass. All chips do as much.
struct Work {
  int chips = 1;
  int layers = 1;
  PartWork layer;  ///< each of the layers
  PartWork ends;   ///< embedding, final norm, unembedding and greedy sampling

  double total(double PartWork::*what) const {
    return static_cast<double>(layers) * (layer.*what) + ends.*what;
  }
  double flops() const {
    return total(&PartWork::matmul_flops) + total(&PartWork::attention_flops);
  }
  double sent_bytes() const {
    return static_cast<double>(layers) * layer.sent_bytes() + ends.sent_bytes();
  }
};

/// The formulas of all passes of one phase under one strategy: the programs that the engine would
/// run are made and typed once, and every count of the ledger (engine/program/count.h) is kept as a
/// sum of products of B, L, M and M + L. So at() costs little, at any size.
class WorkFormulas {
 public:
  /// `like` is a pass that the strategy can run; the formulas hold for every pass whose B, L and M
  /// the blocks of the strategy divide likewise. Throws what require_legal, require_lengths,
  /// require_decodes and partition() throw, and Error("work_c1", ...) on extents below 1 (M: 0).
  WorkFormulas(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
               const Strategy& strategy, const Pass& like);

  /// Whether the formulas hold for this pass.
  bool hold_for(const Pass& pass) const;
  /// Throws Error("work_c2", ...) where they do not.
  Work at(const Pass& pass) const;
  /// Bytes of the weights that rest on one chip, of all layers and of the ends, by name and layout:
  /// "wq E_xH_zyQ". Two strategies that share chips share those that they have in common.
  const std::map<std::string, double>& resting() const;

 private:
  struct Formulas;
  std::shared_ptr<const Formulas> formulas_;
};

/// The work of one pass. Throws what WorkFormulas throws.
Work work_of(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
             const Strategy& strategy, const Pass& pass);

}  // namespace shardproof::cost
