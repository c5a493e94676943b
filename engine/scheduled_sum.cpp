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

std::size_t first_term(const Summation& how, std::size_t K, std::int64_t chunk) {
  return how.order == Schedule::ring ? (static_cast<std::size_t>(chunk) + 1) % K : 0;
}

float rounded(FloatType to, float value) {
  return to == FloatType::bf16 ? round_to_bf16(value) : value;
}

/// The same orders with roundings between the additions.
void rounding_sum(const Summation& how, const std::vector<const float*>& terms, std::int64_t chunk,
                  std::int64_t n, float* out) {
  const std::size_t K = terms.size();
  const std::size_t first = first_term(how, K, chunk);
  const bool travels = how.wire == FloatType::bf16 && K > 1;
  const FloatType hop = travels && how.order == Schedule::ring ? FloatType::bf16 : FloatType::f32;
  const FloatType sent = travels && how.order != Schedule::ring ? FloatType::bf16 : FloatType::f32;
  std::vector<float> level(K);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < K; ++j) level[j] = rounded(sent, terms[(first + j) % K][i]);
    if (how.order == Schedule::tree) {
      for (std::size_t width = K; width > 1; width = (width + 1) / 2) {
        for (std::size_t j = 0; 2 * j + 1 < width; ++j)
          level[j] = rounded(how.acc, level[2 * j] + level[2 * j + 1]);
        if (width % 2 == 1) level[width / 2] = level[width - 1];
      }
    } else {
      for (std::size_t j = 1; j < K; ++j)
        level[0] = rounded(how.acc, rounded(hop, level[0]) + level[j]);
    }
    out[i] = level[0];
  }
}

}  // namespace

void scheduled_sum(const Summation& how, const std::vector<const float*>& terms, std::int64_t chunk,
                   std::int64_t n, float* out) {
  if (how.rounds()) return rounding_sum(how, terms, chunk, n, out);
  if (how.order == Schedule::tree) return tree(terms, n, out);
  const std::size_t K = terms.size();
  const std::size_t first = first_term(how, K, chunk);
  std::copy_n(terms[first], n, out);
  for (std::size_t j = 1; j < K; ++j) {
    const float* const term = terms[(first + j) % K];
    for (std::int64_t i = 0; i < n; ++i) out[i] += term[i];
  }
}

}  // namespace shardproof
