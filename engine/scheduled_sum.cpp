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

void scheduled_sum(const SumOrder& order, const std::vector<const float*>& terms,
                   std::int64_t chunk, ChunkPart part, std::int64_t n, float* out) {
  if (order.loop == Loop::none && order.schedule == Schedule::tree) return tree(terms, n, out);
  const RingSum sum =
      scattered_sum(order.ring(), static_cast<std::int64_t>(terms.size()), chunk, part);
  const auto chain = [&](const std::vector<std::int64_t>& chips, float* total) {
    std::copy_n(terms[static_cast<std::size_t>(chips[0])], n, total);
    for (std::size_t j = 1; j < chips.size(); ++j) {
      const float* const term = terms[static_cast<std::size_t>(chips[j])];
      for (std::int64_t i = 0; i < n; ++i) total[i] += term[i];
    }
  };
  chain(sum.first, out);
  if (sum.second.empty()) return;
  std::vector<float> other(static_cast<std::size_t>(n));
  chain(sum.second, other.data());
  for (std::int64_t i = 0; i < n; ++i) out[i] += other[static_cast<std::size_t>(i)];
}

}  // namespace shardproof
