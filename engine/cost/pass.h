#pragma once

#include <cstdint>

#include "weights/passes.h"

namespace shardproof::cost {

/// One forward pass: B rows with L new tokens each, behind M positions that are cached already. A
/// prefill in one chunk has M = 0, a decode step L = 1.
struct Pass {
  Phase phase = Phase::prefill;
  std::int64_t B = 1, L = 1, M = 0;

  /// BL, the batch in tokens (paper section 2.2).
  double tokens() const { return static_cast<double>(B) * static_cast<double>(L); }
  bool operator==(const Pass&) const = default;
};

}  // namespace shardproof::cost
