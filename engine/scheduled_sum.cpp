#include "engine/scheduled_sum.h"

#include <algorithm>

#include "weights/bf16.h"

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

float rounded(FloatType to, float value) {
  return to == FloatType::bf16 ? round_to_bf16(value) : value;
}

/// The same orders with roundings between the additions.
void rounding_sum(const Summation& how, const std::vector<const float*>& terms, std::int64_t chunk,
                  ChunkPart part, std::int64_t n, float* out) {
  const std::size_t K = terms.size();
  const bool travels = how.wire == FloatType::bf16 && K > 1;
  const bool ring = how.ring() != Loop::none;
  const FloatType hop = travels && ring ? FloatType::bf16 : FloatType::f32;
  const FloatType sent = travels && !ring ? FloatType::bf16 : FloatType::f32;
  const RingSum order = scattered_sum(how.ring(), static_cast<std::int64_t>(K), chunk, part);
  std::vector<float> level(K);
  const auto chain = [&](const std::vector<std::int64_t>& chips) {
    float total = level[static_cast<std::size_t>(chips[0])];
    for (std::size_t j = 1; j < chips.size(); ++j)
      total = rounded(how.acc, rounded(hop, total) + level[static_cast<std::size_t>(chips[j])]);
    return total;
  };
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < K; ++j) level[j] = rounded(sent, terms[j][i]);
    if (!ring && how.order == Schedule::tree) {
      for (std::size_t width = K; width > 1; width = (width + 1) / 2) {
        for (std::size_t j = 0; 2 * j + 1 < width; ++j)
          level[j] = rounded(how.acc, level[2 * j] + level[2 * j + 1]);
        if (width % 2 == 1) level[width / 2] = level[width - 1];
      }
      out[i] = level[0];
      continue;
    }
    out[i] = chain(order.first);
    // The other way round, this sum travels to the owner too.
    if (!order.second.empty())
      out[i] = rounded(how.acc, out[i] + rounded(hop, chain(order.second)));
  }
}

}  // namespace

void scheduled_sum(const Summation& how, const std::vector<const float*>& terms, std::int64_t chunk,
                   ChunkPart part, std::int64_t n, float* out) {
  if (how.rounds()) return rounding_sum(how, terms, chunk, part, n, out);
  if (how.ring() == Loop::none && how.order == Schedule::tree) return tree(terms, n, out);
  const RingSum sum =
      scattered_sum(how.ring(), static_cast<std::int64_t>(terms.size()), chunk, part);
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
