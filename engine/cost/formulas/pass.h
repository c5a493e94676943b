#pragma once

#include <cstdint>

#include "weights/model/passes.h"

namespace shardproof::cost {

/// One forward pass: B rows with L new tokens each, after M cached positions. A prefill in one
/// chunk has M = 0, a decode step L = 1.
struct Pass {
  Phase phase = Phase::prefill;
  std::int64_t B = 1, L = 1, M = 0;

  /// BL, the batch in tokens (paper section 2.2).
  double tokens() const { return static_cast<double>(B) * static_cast<double>(L); }
  /// The number of pairs, per row, of a new position and a position that the causal mask lets it
  /// see, itself and all earlier ones: LM + L(L+1)/2 of the full L(M+L). The chunks of a prompt
  /// together have as many as the whole prompt.
  double seen() const {
    const auto tokens = static_cast<double>(L), cached = static_cast<double>(M);
    return tokens * (cached + (tokens + 1.0) / 2.0);
  }
  bool operator==(const Pass&) const = default;
};

}  // namespace shardproof::cost
