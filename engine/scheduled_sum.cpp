#include "engine/scheduled_sum.h"

#include <algorithm>

namespace shardproof {
namespace {

void tree(const std::vector<const float*>& terms, std::int64_t n, float* out) {
  std::vector<float> level(terms.size());
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < terms.size(); ++j) level[j] = terms[j][i];
    for (std::size_t width = terms.size(); width > 1; width = (width + 1) / 2) {
      for (std::size_t j = 0; 2 * j + 1 < width; ++j) level[j] = level[2 * j] + level[2 * j + 1];
      if (width % 2 == 1) level[width / 2] = level[width - 1];
    }
    out[i] = level[0];
  }
}

}  // namespace

void scheduled_sum(Schedule schedule, const std::vector<const float*>& terms, std::int64_t chunk,
                   std::int64_t n, float* out) {
  if (schedule == Schedule::tree) return tree(terms, n, out);
  const std::size_t K = terms.size();
  const std::size_t first =
      schedule == Schedule::ring ? (static_cast<std::size_t>(chunk) + 1) % K : 0;
  std::copy_n(terms[first], n, out);
  for (std::size_t j = 1; j < K; ++j) {
    const float* const term = terms[(first + j) % K];
    for (std::int64_t i = 0; i < n; ++i) out[i] += term[i];
  }
}

}  // namespace shardproof
