#pragma once

namespace shardproof::cost {

/// Bytes of one chip's memory, by what they hold.
struct ChipMemory {
  double weights = 0.0;  ///< as this phase needs them to rest
  /// What the other phase's weights need besides, where both phases share the chips and their
  /// strategies do not rest a weight alike.
  double other_weights = 0.0;
  double caches = 0.0;  ///< K and V of all rows, at their longest
  double live = 0.0;    ///< the most that activations and gathered weights need at one time

  double total() const { return weights + other_weights + caches + live; }
};

}  // namespace shardproof::cost
