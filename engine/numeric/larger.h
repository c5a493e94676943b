#pragma once

#include <algorithm>
#include <cmath>

namespace shardproof {

/// Returns the larger of two numbers; of zeros +0 if either is +0, so that no order of several
/// shows.
template <class Number>
Number larger(Number a, Number b) {
  if (a == b) return std::signbit(a) ? b : a;
  return std::max(a, b);
}

}  // namespace shardproof
