#include "tools/bench/contest.h"

#include <algorithm>
#include <ctime>

namespace shardproof::bench {

double seconds(Clock clock) {
  timespec now{};
  clock_gettime(clock == Clock::thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<double> contest(const std::vector<Side>& sides, Clock clock, int rounds) {
  constexpr double kShortest = 1e-3;
  std::vector<int> repeats;
  for (const Side& side : sides) {
    side.run();  // memory, tables and caches as in the steady state
    const double start = seconds(clock);
    side.run();
    const double once = std::max(seconds(clock) - start, 1e-7);
    repeats.push_back(std::clamp(static_cast<int>(kShortest / once) + 1, 1, 1000));
  }
  std::vector<std::vector<double>> times(sides.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t s = 0; s < sides.size(); ++s) {
      const double start = seconds(clock);
      for (int i = 0; i < repeats[s]; ++i) sides[s].run();
      times[s].push_back((seconds(clock) - start) / repeats[s]);
    }
  std::vector<double> medians;
  for (auto& of_side : times) {
    const auto middle = of_side.begin() + static_cast<std::ptrdiff_t>(of_side.size() / 2);
    std::nth_element(of_side.begin(), middle, of_side.end());
    medians.push_back(*middle);
  }
  return medians;
}

}  // namespace shardproof::bench
