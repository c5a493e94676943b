#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/cost/chip/chip_memory.h"
#include "engine/cost/formulas/paper_formulas.h"
#include "engine/cost/formulas/pass.h"
#include "engine/cost/work/bounds.h"
#include "engine/cost/work/work.h"
#include "engine/strategies/strategy.h"
#include "weights/model/model_config.h"

namespace shardproof::cost {

/// The cost of one phase under one strategy on one torus. All seconds cover the phase's whole
/// batch: all passes of a prefill, one step of a decode.
struct Candidate {
  Strategy strategy;
  Torus torus;
  NumberFormat weights = NumberFormat::bf16;
  ModelConfig placed;  ///< the model as chips hold it, heads and vocabulary padded
  /// One pass. A prefill may split its rows over several passes to save memory; a decode step's M
  /// is the mean over the steps.
  Pass pass;
  std::int64_t batch = 1;  ///< rows, all passes together
  Bounds bounds;           ///< for one pass

  double lower = 0.0;     ///< seconds with perfect overlap
  double estimate = 0.0;  ///< seconds by the calibrated estimate
  double additive = 0.0;  ///< seconds with no overlap
  ChipMemory memory;
  std::map<std::string, double> sent;     ///< bytes that one chip sends, by collective axes
  double layer_elements = 0.0;            ///< elements one chip sends per layer, all passes
  std::map<std::string, double> resting;  ///< WorkFormulas::resting
  std::vector<CacheOfLayers> caches;      ///< WorkFormulas::caches

  std::int64_t passes() const { return batch / pass.B; }
  double tokens() const { return static_cast<double>(batch) * static_cast<double>(pass.L); }
  /// Seconds of compute, memory, communication and hops, all passes.
  Seconds seconds() const;
  /// The paper's cost, n·time/(BL) (section 4.4).
  double chip_seconds_per_token() const { return chip_seconds(tokens(), torus.chips(), estimate); }
  /// The paper's MFU: 2N FLOPs a token over the peak of all chips, attention left out (section 2).
  double flops_utilization(double parameters, double peak) const {
    return mfu(parameters, tokens(), torus.chips(), peak, estimate);
  }
};

/// Bytes of the weights in `other` that `own` does not keep resident in the same layout.
double weights_besides(const std::map<std::string, double>& own,
                       const std::map<std::string, double>& other);

}  // namespace shardproof::cost
