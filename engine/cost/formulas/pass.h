#pragma once

#include <cstdint>

#include "weights/model/passes.h"

namespace shardproof::cost {

/// One forward pass: B rows with L new tokens each, behind M positions that are cached already. A
/// prefill in one chunk has M = 0, a decode step L = 1.
struct Pass {
  Phase phase = Phase::prefill;
  std::int64_t B = 1, L = 1, M = 0;

  /// BL, the batch in tokens (paper section 2.2).
  double tokens() const { return static_cast<double>(B) * static_cast<double>(L); }
  /// Of one row the pairs of a new position and one that the causal mask lets it see, itself and
  /// all before it: LM + L(L+1)/2, where L(M+L) are the whole square. Chunks of a prompt have
  /// together as many as the prompt in one.
  double seen() const {
    const auto tokens = static_cast<double>(L), cached = static_cast<double>(M);
    return tokens * (cached + (tokens + 1.0) / 2.0);
  }
  bool operator==(const Pass&) const = default;
};

}  // namespace shardproof::cost
