#pragma once

#include "engine/cost/chip/chip.h"
#include "engine/cost/work/work.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// Seconds of one chip, by what they are spent on, each at the chip's full speed.
struct Seconds {
  double compute = 0.0;        ///< FLOPs at peak, as programs do them: of attention the square
  double memory = 0.0;         ///< weights and caches read from HBM once (paper section 2)
  double communication = 0.0;  ///< bytes sent at the interconnect's bandwidth (paper section A.1)
  double hops = 0.0;           ///< latency of the rings' steps; 0 where the chip states none
  double needed = 0.0;         ///< of compute what no run does without (PartWork::needed_flops)

  /// Perfect overlap: the longest alone, of compute what is needed. No run is faster.
  double lower() const;
  /// No overlap: one after the other.
  double additive() const { return compute + memory + communication + hops; }
};

/// Seconds of one pass.
struct Bounds {
  Seconds layer;  ///< each of the layers
  Seconds ends;   ///< embedding, unembedding and sampling
  int layers = 1;

  /// All overlaps, whatever part it is of: the ends' weights may be read while layers compute.
  double lower() const { return total().lower(); }
  double additive() const { return layers * layer.additive() + ends.additive(); }
  Seconds total() const;
};

/// Seconds of one collective: bytes over bandwidth, hops apart; 0 of a group of one chip. Throws
/// what bounds_of throws.
double communication_seconds(const Traffic& traffic, const Chip& chip);

/// Seconds of one pass. Activations of type `act` are what products compute in: int8 weights are
/// widened first, so that the chip's peak is that of the activations (paper section 3.6).
/// Throws what Chip::peak throws, and Error("bounds_c1", ...) on a chip without an interconnect
/// where chips send anything.
Bounds bounds_of(const Work& work, const Chip& chip, ActType act);

}  // namespace shardproof::cost
