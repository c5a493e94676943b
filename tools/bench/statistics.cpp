#include "tools/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardproof::bench {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

double spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  double of_count = std::pow(0.5, static_cast<double>(n));  // P(k values are below the median)
  double at_most = of_count;                                // P(k or fewer are below it)
  std::size_t k = 0;
  if (at_most > 0.05) return std::numeric_limits<double>::infinity();
  while (true) {
    of_count *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    if (at_most + of_count > 0.05) break;
    at_most += of_count;
    ++k;
  }
  return (values[n - 1 - k] - values[k]) / median(values);
}

}  // namespace shardproof::bench
