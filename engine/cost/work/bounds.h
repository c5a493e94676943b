#pragma once

#include "engine/cost/chip/chip.h"
#include "engine/cost/work/work.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"

namespace shardproof::cost {

/// Seconds of one chip, by resource, each at the chip's full speed.
struct Seconds {
  double compute = 0.0;        ///< FLOPs at peak; attention counts the full square
  double memory = 0.0;         ///< weights and caches read from HBM once (paper section 2)
  double communication = 0.0;  ///< bytes sent at the interconnect's bandwidth (paper section A.1)
  double hops = 0.0;           ///< latency of ring steps; 0 if the chip states none
  double needed = 0.0;         ///< compute that no run can skip (PartWork::needed_flops)

  /// Perfect overlap: the maximum of the resources, with `needed` as compute. No run is faster.
  double lower() const;
  /// No overlap: the sum of the resources.
  double additive() const { return compute + memory + communication + hops; }
};

/// Seconds of one pass.
struct Bounds {
  Seconds layer;  ///< each of the layers; their mean where they differ
  Seconds ends;   ///< embedding, unembedding and sampling
  int layers = 1;

  /// Perfect overlap across parts: the ends' weights may be read while layers compute.
  double lower() const { return total().lower(); }
  double additive() const { return layers * layer.additive() + ends.additive(); }
  Seconds total() const;
};

/// Seconds of one collective: bytes over bandwidth, without hop latency; 0 for a group of one chip.
/// Throws what bounds_of throws.
double communication_seconds(const Traffic& traffic, const Chip& chip);

/// Returns the seconds of one pass. Products compute in the activation type `act`: int8 weights are
/// widened first, so the chip's peak for activations applies (paper section 3.6). Throws what
/// Chip::peak throws, and Error("bounds_c1", ...) if chips send anything and the chip has no
/// interconnect.
Bounds bounds_of(const Work& work, const Chip& chip, NumberFormat act);

}  // namespace shardproof::cost
