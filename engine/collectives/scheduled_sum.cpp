#include "engine/collectives/scheduled_sum.h"

#include <algorithm>

#include "weights/base/bf16.h"

namespace shardproof {
namespace {

float rounded(NumberFormat to, float value) {
  return to == NumberFormat::bf16 ? round_to_bf16(value) : value;
}

/// Rounding of an addition's result, of a sum that hops along a ring, and of every term.
struct Rounding {
  NumberFormat sum = NumberFormat::f32, hop = NumberFormat::f32, term = NumberFormat::f32;
};

/// Adds the terms of one element, neighbours pairwise, level by level.
float tree(std::vector<float>& level, const Rounding& to) {
  for (std::size_t width = level.size(); width > 1; width = (width + 1) / 2) {
    for (std::size_t j = 0; 2 * j + 1 < width; ++j)
      level[j] = rounded(to.sum, level[2 * j] + level[2 * j + 1]);
    if (width % 2 == 1) level[width / 2] = level[width - 1];
  }
  return level[0];
}

/// Adds the terms of one element in the order of `chips`.
float chain(const std::vector<float>& terms, const std::vector<std::int64_t>& chips,
            const Rounding& to) {
  float total = terms[static_cast<std::size_t>(chips[0])];
  for (std::size_t j = 1; j < chips.size(); ++j)
    total = rounded(to.sum, rounded(to.hop, total) + terms[static_cast<std::size_t>(chips[j])]);
  return total;
}

Rounding rounding_of(const Summation& how, std::size_t K) {
  const bool travels = how.wire == NumberFormat::bf16 && K > 1;
  const bool ring = how.ring() != Loop::none;
  return {.sum = how.acc,
          .hop = travels && ring ? NumberFormat::bf16 : NumberFormat::f32,
          .term = travels && !ring ? NumberFormat::bf16 : NumberFormat::f32};
}

}  // namespace

void scheduled_sum(const Summation& how, const std::vector<const float*>& terms, std::int64_t chunk,
                   ChunkPart part, std::int64_t n, float* out) {
  const std::size_t K = terms.size();
  const bool as_tree = how.ring() == Loop::none && how.order == Schedule::tree;
  const RingSum order = scattered_sum(how.ring(), static_cast<std::int64_t>(K), chunk, part);
  if (!how.rounds() && !as_tree && order.second.empty()) {
    // Adds each term to all elements at once.
    std::copy_n(terms[static_cast<std::size_t>(order.first[0])], n, out);
    for (std::size_t j = 1; j < K; ++j) {
      const float* const term = terms[static_cast<std::size_t>(order.first[j])];
      for (std::int64_t i = 0; i < n; ++i) out[i] += term[i];
    }
    return;
  }
  const Rounding to = rounding_of(how, K);
  std::vector<float> of_element(K);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < K; ++j) of_element[j] = rounded(to.term, terms[j][i]);
    if (as_tree) {
      out[i] = tree(of_element, to);
      continue;
    }
    out[i] = chain(of_element, order.first, to);
    // The sum that travels the other way round hops to the owner too.
    if (!order.second.empty())
      out[i] = rounded(to.sum, out[i] + rounded(to.hop, chain(of_element, order.second, to)));
  }
}

}  // namespace shardproof
