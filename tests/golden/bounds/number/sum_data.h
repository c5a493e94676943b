#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "golden/bounds/number/audit.h"
#include "golden/bounds/number/interval_tensor.h"
#include "weights/base/detail/stable_sort.h"

namespace shardproof::bounds {

/// Factors of sums as users have them, and as they are hardest: drawn from a seed.
inline Products drawn_products(const std::string& kind, std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> gauss;
  const float one = 0.1F + 0.01F * static_cast<float>(seed % 7), two = 0.7F;
  const float last_unit = std::ldexp(1.0F, std::ilogb(static_cast<double>(n)) - 23);
  const auto k_of = [&](std::size_t k) { return static_cast<float>(k) / static_cast<float>(n); };
  Products products;
  for (std::size_t k = 0; k < n; ++k) {
    float a = gauss(random), b = gauss(random);
    if (kind == "positive") a = std::abs(a), b = std::abs(b);
    if (kind == "heavy") a = a * a * a, b = b * std::exp(2 * gauss(random));
    if (kind == "constant") a = one, b = two;
    if (kind == "two-valued") a = k % 3 == 0 ? one : 0.5F * one, b = two;
    if (kind == "bf16 constant")
      a = 0.33203125F + 0.001953125F * static_cast<float>(seed), b = 0.69921875F;
    if (kind == "ramp") a = one * (1 + 1e-7F * static_cast<float>(k)), b = two;
    if (kind == "steps") a = one + 0.01F * std::floor(8 * k_of(k)), b = two;
    if (kind == "sine") a = 1.5F + std::sin(6.0F * k_of(k)), b = two;
    if (kind == "denominators") a = std::exp(3 * a - 6), b = 1.0F;
    // What they lose cancels in the sum's last binade, and has one sign in the one before.
    if (kind == "alternating") a = 1 + last_unit * (k % 2 == 0 ? 0.251F : 0.751F), b = 1.0F;
    if (kind == "cancelling" && k % 2 == 1)
      a = -static_cast<float>(products.back().first),
      b = static_cast<float>(products.back().second);
    products.emplace_back(static_cast<double>(a), static_cast<double>(b));
  }
  return products;
}

inline const std::vector<std::string>& kinds_of_data() {
  static const std::vector<std::string> kinds{
      "gauss", "positive", "heavy", "constant",     "two-valued",  "bf16 constant",
      "ramp",  "steps",    "sine",  "denominators", "alternating", "cancelling"};
  return kinds;
}

inline IntervalSum sum_of(const Products& products) {
  IntervalSum sum;
  for (const auto& [a, b] : products) sum.add(a, b);
  return sum;
}

/// An f32 sum of products one after the other, with fma or not.
inline float chain_of(const Products& products, bool fused) {
  float sum = 0.0F;
  for (const auto& [a, b] : products) {
    const auto x = static_cast<float>(a), y = static_cast<float>(b);
    const float product = x * y;
    sum = fused ? std::fma(x, y, sum) : sum + product;
  }
  return sum;
}

inline float pairwise_of(const Products& products) {
  if (products.size() <= 8) return chain_of(products, false);
  const auto half = products.begin() + static_cast<std::ptrdiff_t>(products.size() / 2);
  return pairwise_of({products.begin(), half}) + pairwise_of({half, products.end()});
}

/// The products in other orders: random ones, and the positive ones first.
inline Products shuffled(Products products, unsigned seed) {
  std::mt19937 random(seed);
  std::shuffle(products.begin(), products.end(), random);
  return products;
}
inline Products positives_first(Products products) {
  const auto positive = [](const auto& p) { return p.first * p.second > 0; };
  stable_sort(products, [&](const auto& a, const auto& b) { return positive(a) && !positive(b); });
  return products;
}

/// f32 sums by a random tree, or of several chains that are added in turn.
inline float in_some_order(const Products& products, std::mt19937& random) {
  const Products p = shuffled(products, static_cast<unsigned>(random()));
  if (random() % 2 == 0) {
    std::vector<Products> chains(1 + random() % 8);
    for (std::size_t i = 0; i < p.size(); ++i) chains[i % chains.size()].push_back(p[i]);
    float sum = chain_of(chains[0], true);
    for (std::size_t i = 1; i < chains.size(); ++i) sum += chain_of(chains[i], true);
    return sum;
  }
  std::vector<float> level;
  for (const auto& product : p) level.push_back(chain_of({product}, false));
  while (level.size() > 1) {
    const std::size_t at = random() % (level.size() - 1);
    level[at] = level[at] + level.back();
    level.pop_back();
  }
  return level[0];
}

/// f32 sums of the same products in orders and trees in which every node is of neighbours, or not.
inline std::vector<double> natural_sums(const Products& p) {
  std::vector<double> sums;
  const Products reversed(p.rbegin(), p.rend());
  for (const bool fused : {false, true})
    for (const Products* const order : {&p, &reversed})
      sums.push_back(static_cast<double>(chain_of(*order, fused)));
  sums.push_back(static_cast<double>(pairwise_of(p)));
  float blocks = 0.0F;
  for (std::size_t k = 0; k < p.size(); k += 256)
    blocks += chain_of({p.begin() + static_cast<std::ptrdiff_t>(k),
                        p.begin() + static_cast<std::ptrdiff_t>(std::min(k + 256, p.size()))},
                       true);
  sums.push_back(static_cast<double>(blocks));
  return sums;
}
inline std::vector<double> permuted_sums(const Products& p, unsigned seed) {
  std::vector<double> sums{static_cast<double>(chain_of(shuffled(p, seed), false)),
                           static_cast<double>(chain_of(shuffled(p, seed + 1), true)),
                           static_cast<double>(pairwise_of(shuffled(p, seed + 2))),
                           static_cast<double>(chain_of(positives_first(p), true))};
  std::mt19937 random(seed + 3);
  for (int i = 0; i < 4; ++i) sums.push_back(static_cast<double>(in_some_order(p, random)));
  return sums;
}
inline std::vector<double> all_sums(const Products& p, unsigned seed) {
  std::vector<double> sums = natural_sums(p);
  for (const double sum : permuted_sums(p, seed)) sums.push_back(sum);
  return sums;
}

}  // namespace shardproof::bounds
