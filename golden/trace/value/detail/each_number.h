#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "golden/trace/value/held.h"

namespace shardproof::candidate {

/// Calls see(number, chips that hold it, place, size) for each number of the value. Adds partial
/// sums in twice f64's precision; `size` is the sum of their magnitudes.
template <class See>
void each_number(const Held& held, See&& see) {
  for (int chip = 0; chip < held.torus.chips(); ++chip) {
    const auto c = static_cast<std::size_t>(chip);
    const std::vector<int> group = held.group(chip);
    if (group.empty()) continue;
    for (std::size_t i = 0; i < held.shards[c].size(); ++i) {
      const std::int64_t place = held.places[c][i];
      if (place == Held::kNone) continue;
      double v = 0.0, rest = 0.0, size = 0.0;
      for (const int member : group) {
        size += held.size(static_cast<std::size_t>(member), i);
        const double p = held.shards[static_cast<std::size_t>(member)][i], sum = v + p;
        const double back = sum - v;
        rest += (v - (sum - back)) + (p - back);
        v = sum;
      }
      if (group.size() > 1) v += rest;
      see(group.size() > 1 ? v : held.shards[c][i], group, place, size);
    }
  }
}

}  // namespace shardproof::candidate
