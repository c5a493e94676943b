#include "oracle/model/detail/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "oracle/numeric/detail/functions.h"
#include "weights/storage/generator.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

/// Returns the token of the largest logit, the lowest token of a tie.
std::int32_t greedy(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<float> descending(std::span<const float> e) {
  std::vector<float> sorted(e.begin(), e.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  return sorted;
}

/// Calls ask(threshold) for each round of the search.
template <class Ask>
void each_round(float floor, Ask&& ask) {
  const auto found = std::bit_cast<std::uint32_t>(floor);
  for (std::uint32_t bit = std::uint32_t{1} << (kSearchRounds - 1); bit > 0; bit /= 2)
    ask(std::bit_cast<float>(found / bit / 2 * bit * 2 + bit));
}

std::int32_t random(std::span<const float> logits, const Draws& draws, const Draw& draw) {
  const Sampling& how = draws.sampling;
  std::vector<float> e = chances(logits, how.temperature, draws.unit);
  if (how.top_k > 0) e = kept(e, top_k_floor(e, how.top_k));
  if (how.top_p < 1) e = kept(e, top_p_floor(e, how.top_p));
  return drawn(e, draws.seed, draw);
}

}  // namespace

std::vector<float> chances(std::span<const float> logits, double temperature, double unit) {
  std::vector<float> e;
  for (const float logit : logits) {
    e.push_back(static_cast<float>(static_cast<double>(logit) * unit / temperature));
    if (!std::isfinite(e.back()))
      throw Error("oracle_finite", fmt::format("the logit {} at temperature={} is {}", logit,
                                               temperature, e.back()));
  }
  const float top = *std::max_element(e.begin(), e.end());
  for (float& t : e) t = exp_of(t - top);
  return e;
}

float top_k_floor(std::span<const float> e, std::int64_t k) {
  const std::vector<float> sorted = descending(e);
  return k > 0 ? sorted.at(static_cast<size_t>(k - 1)) : sorted.back();
}

float top_p_floor(std::span<const float> e, double p) {
  // p = integer·2^(exponent−53): integer·(the whole sum) against 2^(53−exponent)·(the sum so far).
  int exponent = 0;
  const auto integer = static_cast<std::uint64_t>(std::ldexp(std::frexp(p, &exponent), 53));
  const Natural wanted = sum_of_chances(e).times(integer);
  const std::vector<float> sorted = descending(e);
  Natural sum;  // scaled by 2^(53−exponent)
  for (size_t i = 0; i < sorted.size(); ++i) {
    sum.add(sorted[i], 53 - exponent);
    const bool more_of_it = i + 1 < sorted.size() && sorted[i + 1] == sorted[i];
    if (!more_of_it && sum >= wanted) return sorted[i];
  }
  return sorted.back();
}

std::vector<float> kept(std::span<const float> e, float floor) {
  std::vector<float> all(e.begin(), e.end());
  for (float& v : all)
    if (v < floor) v = 0.0F;
  return all;
}

std::vector<std::uint32_t> search_counts(std::span<const float> e, float floor) {
  std::vector<std::uint32_t> counts;
  each_round(floor, [&](float least) {
    counts.push_back(static_cast<std::uint32_t>(
        std::count_if(e.begin(), e.end(), [&](float v) { return v >= least; })));
  });
  return counts;
}

std::vector<std::uint32_t> search_sums(std::span<const float> e, float floor) {
  std::vector<std::uint32_t> sums = words_of(sum_of_chances(e));
  each_round(floor, [&](float least) {
    const std::vector<std::uint32_t> words = words_of(sum_of_chances(kept(e, least)));
    sums.insert(sums.end(), words.begin(), words.end());
  });
  return sums;
}

std::vector<std::uint32_t> words_of(const Natural& sum) {
  std::vector<std::uint32_t> words;
  for (size_t w = 0; w < kSumWords; ++w) words.push_back(sum.digit(w));
  return words;
}

Natural sum_of_chances(std::span<const float> e) {
  Natural sum;
  for (const float v : e) sum.add(v);
  return sum;
}

std::int32_t drawn(std::span<const float> e, std::uint64_t seed, const Draw& draw) {
  const std::uint64_t index = static_cast<std::uint64_t>(draw.row) * (std::uint64_t{1} << 32) +
                              static_cast<std::uint64_t>(draw.token);
  return drawn_at(e, counter_random(seed, "sample", index)[0] / 256);
}

std::int32_t drawn_at(std::span<const float> e, std::uint32_t r) {
  const Natural Z = sum_of_chances(e).times(r);
  Natural prefix;  // scaled by 2^24
  for (size_t v = 0; v < e.size(); ++v) {
    prefix.add(e[v], 24);
    if (prefix > Z) return static_cast<std::int32_t>(v);
  }
  throw Error("oracle_range", "sampling needs a token whose weight is above 0");
}

IntTensor sampled(const Tensor& logits, const Draws& draws) {
  IntTensor ids({logits.shape[0], 1});
  const auto V = static_cast<size_t>(logits.shape[1]);
  for (size_t b = 0; b < ids.data.size(); ++b) {
    const std::span<const float> row(logits.data.data() + b * V, V);
    ids.data[b] =
        draws.sampling.sample == Sample::greedy ? greedy(row) : random(row, draws, draws.of(b));
  }
  return ids;
}

}  // namespace shardproof::oracle
