#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "golden/trace/value/dumped_value.h"

namespace shardproof::dump {

/// Calls see(number, chips that hold it, place, size) for each number of the value. Adds partial
/// sums in twice f64's precision; `size` is the sum of their magnitudes.
template <class See>
void each_number(const DumpedValue& dumped, See&& see) {
  for (int chip = 0; chip < dumped.torus.chips(); ++chip) {
    const auto c = static_cast<std::size_t>(chip);
    const std::vector<int> group = dumped.group(chip);
    if (group.empty()) continue;
    const Numbers& own = dumped.shards[c];
    if (group.size() == 1) {
      dumped.places[c].each(
          [&](std::size_t i, std::int64_t place) { see(own[i], group, place, dumped.size(c, i)); });
      continue;
    }
    dumped.places[c].each([&](std::size_t i, std::int64_t place) {
      double v = 0.0, rest = 0.0, size = 0.0;
      for (const int member : group) {
        size += dumped.size(static_cast<std::size_t>(member), i);
        const double p = dumped.shards[static_cast<std::size_t>(member)][i], sum = v + p;
        const double back = sum - v;
        rest += (v - (sum - back)) + (p - back);
        v = sum;
      }
      see(v + rest, group, place, size);
    });
  }
}

}  // namespace shardproof::dump
