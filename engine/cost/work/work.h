#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/cost/formulas/pass.h"
#include "engine/layout/layout.h"
#include "engine/layout/torus.h"
#include "engine/program/ops.h"
#include "engine/strategies/strategy.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// The traffic of one collective each time that it runs.
struct Traffic {
  std::string step;  ///< the name of its result in the program
  OpKind kind{};
  Axes axes;                  ///< axes of its group
  int group = 1;              ///< K, the product of the axes' sizes
  int rings = 1;              ///< number of axes of more than one chip, at least 1
  bool weight = false;        ///< moves a weight, not an activation
  double buffer_bytes = 0.0;  ///< D of paper section A.1: the larger of its buffers on one chip
  double sent_bytes = 0.0;    ///< by one chip: D(K−1)/K, twice that for all_reduce
  double elements = 0.0;      ///< sent by one chip
  int times = 1;              ///< times D is sent: 2 for all_reduce, which is two collectives
  int hops = 0;               ///< ring steps in sequence: K − 1, twice that for all_reduce
};

/// Returns the number of axes of more than one chip, at least 1: an axis of one chip has no links.
int rings_of(const Axes& axes, const Torus& torus);

/// The work and memory of one chip for one part of a pass: a layer, or the two ends of the model.
struct PartWork {
  double matmul_flops = 0.0;     ///< 2 per multiply-add, in W matrices and unembedding
  double attention_flops = 0.0;  ///< scores and weighted values: 4·B·L·(M+L)·H·Q
  /// The part of both that no run under these layouts can skip: W matrices, the unembedding, and
  /// the attention scores that the causal mask leaves (Pass::seen); no sums of norms. Where chips
  /// have blocks of L or M, their mean.
  double needed_flops = 0.0;
  double weight_bytes = 0.0;  ///< of weights resident on the chip
  /// Bytes of the weights that products read, resident or gathered.
  double weight_reads = 0.0;
  double cache_bytes = 0.0;       ///< K and V for M + L positions
  double cache_reads = 0.0;       ///< part of cache_bytes that attention reads
  double activation_bytes = 0.0;  ///< of other values, written and read
  double live_bytes = 0.0;        ///< peak of the values made by the program
  std::vector<Traffic> traffic;

  double flops() const { return matmul_flops + attention_flops; }
  /// The sum of a number of each collective.
  double sum(double Traffic::*what) const;
  double sent_bytes() const { return sum(&Traffic::sent_bytes); }
};

/// A cache of the layers of one kind.
struct CacheOfLayers {
  Layout layout;
  double elements = 0.0;  ///< of one position of a row, on all chips, over these layers
};

/// Layers of one kind, and each one's work.
struct LayersWork {
  int layers = 1;
  PartWork layer;
};

/// The work and memory of one chip in one pass, equal on all chips.
struct Work {
  int chips = 1;
  int layers = 1;
  PartWork layer;                       ///< each of the layers of the first kind
  PartWork ends;                        ///< embedding, final norm, unembedding and greedy sampling
  std::vector<LayersWork> others = {};  ///< of a text's layers that a flag tells from the first

  /// Returns the number of layers of the first kind.
  int alike() const;
  /// Returns a sum over all layers.
  template <class Of>
  double over_layers(const Of& of) const {
    double sum = alike() * of(layer);
    for (const LayersWork& kind : others) sum += kind.layers * of(kind.layer);
    return sum;
  }
  double of_layers(double PartWork::*what) const {
    return over_layers([&](const PartWork& part) { return part.*what; });
  }
  double total(double PartWork::*what) const { return of_layers(what) + ends.*what; }
  double flops() const {
    return total(&PartWork::matmul_flops) + total(&PartWork::attention_flops);
  }
  double sent_bytes() const {
    return over_layers([](const PartWork& part) { return part.sent_bytes(); }) + ends.sent_bytes();
  }
  /// Returns the most that the values of a layer take at one time.
  double live_bytes_of_layer() const;
};

/// The formulas of all passes of one phase under one strategy. The programs that the engine would
/// run are built and typed once, and every count of the ledger (engine/program/count.h) is kept as
/// a sum of products of B, L, M and M + L, so at() is cheap at any size. Of a model that is a text
/// contractions with a cache count where they exist (engine/cost/graph/graph.h), values of a pair
/// of a new position and a slot are not stored, the head is of each row's last position, and with
/// int8 weights the lines are those of its int8 form.
class WorkFormulas {
 public:
  /// `like` is a pass that the strategy can run; the formulas hold for every pass whose B, L and M
  /// have the same divisibility by the strategy's blocks. Throws what require_legal,
  /// require_lengths, require_decodes, partition(), text_programs() and layer_products() throw, and
  /// Error("work_c1", ...) if B < 1, L < 1 or M < 0.
  WorkFormulas(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
               const Strategy& strategy, const Pass& like);

  /// Returns true if the formulas hold for this pass.
  bool hold_for(const Pass& pass) const;
  /// Throws Error("work_c2", ...) if the formulas do not hold for this pass.
  Work at(const Pass& pass) const;
  /// Bytes of the resident weights of one chip, of all layers and of the ends, by name and layout:
  /// "wq E_xH_zyQ". Two strategies on the same chips share the entries that they have in common.
  const std::map<std::string, double>& resting() const;
  /// The caches that a pass leaves, by kind of layers, then in the program's order.
  const std::vector<CacheOfLayers>& caches() const;

 private:
  struct Formulas;
  std::shared_ptr<const Formulas> formulas_;
};

/// Returns the elements that one chip sends in a layer, on average over the layers.
double elements_of_layer(const Work& work);

/// Returns the work of one pass. Throws what WorkFormulas throws.
Work work_of(const ModelConfig& model, const Numerics& numerics, const Torus& torus,
             const Strategy& strategy, const Pass& pass);

}  // namespace shardproof::cost
