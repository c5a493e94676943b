#include "tools/bench/contest.h"

#include <algorithm>

#include "tools/bench/statistics.h"

namespace shardproof::bench {

std::vector<Cost> contest(const std::vector<std::function<void()>>& sides, Whose whose,
                          int rounds) {
  constexpr double kShortest = 1e-3;
  std::vector<int> times;
  for (const auto& side : sides) {
    side();  // warms memory, tables and caches
    const Cost start = clocks(whose);
    side();
    const double once = std::max((clocks(whose) - start).processor, 1e-7);
    times.push_back(std::clamp(static_cast<int>(kShortest / once) + 1, 1, 1000));
  }
  std::vector<std::vector<double>> processor(sides.size()), wall(sides.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t s = 0; s < sides.size(); ++s) {
      const Cost start = clocks(whose);
      for (int i = 0; i < times[s]; ++i) sides[s]();
      const Cost took = clocks(whose) - start;
      processor[s].push_back(took.processor / times[s]);
      wall[s].push_back(took.wall / times[s]);
    }
  std::vector<Cost> medians;
  for (std::size_t s = 0; s < sides.size(); ++s)
    medians.push_back({median(processor[s]), median(wall[s])});
  return medians;
}

}  // namespace shardproof::bench
