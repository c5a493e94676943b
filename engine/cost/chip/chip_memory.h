#pragma once

namespace shardproof::cost {

/// Bytes of one chip's memory, by content.
struct ChipMemory {
  double weights = 0.0;  ///< resident for this phase
  /// Additional weights of the other phase, if both phases share the chips and their strategies
  /// keep a weight in different layouts.
  double other_weights = 0.0;
  double caches = 0.0;  ///< K and V of all rows, at their longest
  double live = 0.0;    ///< peak of activations and gathered weights

  double total() const { return weights + other_weights + caches + live; }
};

}  // namespace shardproof::cost
