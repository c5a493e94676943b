#include "golden/bounds/number/emulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "golden/bounds/number/interval_tensor.h"

namespace shardproof::bounds {
namespace {

/// Adds products in f32, either fused (fma) or with each product rounded first.
struct Chain {
  bool fused;
  float next(float sum, const std::pair<double, double>& p) const {
    const auto a = static_cast<float>(p.first), b = static_cast<float>(p.second);
    if (fused) return std::fma(a, b, sum);
    const float product = a * b;
    return sum + product;
  }
  float of(std::span<const std::pair<double, double>> products) const {
    float sum = 0.0F;
    for (const auto& p : products) sum = next(sum, p);
    return sum;
  }
};

float in_lanes(const Products& products, std::size_t lanes, const Chain& chain) {
  std::vector<float> sums(lanes, 0.0F);
  for (std::size_t k = 0; k < products.size(); ++k)
    sums[k % lanes] = chain.next(sums[k % lanes], products[k]);
  for (; lanes > 1; lanes /= 2)
    for (std::size_t i = 0; i < lanes / 2; ++i) sums[i] += sums[i + lanes / 2];
  return sums[0];
}

float in_blocks(std::span<const std::pair<double, double>> products, std::size_t block,
                const Chain& chain) {
  float sum = 0.0F;
  for (std::size_t k = 0; k < products.size(); k += block)
    sum += chain.of(products.subspan(k, std::min(block, products.size() - k)));
  return sum;
}

float in_pairs(std::span<const std::pair<double, double>> products, const Chain& chain) {
  if (products.size() <= 2) return chain.of(products);
  const std::size_t half = products.size() / 2;
  return in_pairs(products.first(half), chain) + in_pairs(products.subspan(half), chain);
}

double cut_off(double v, double quantum) { return std::trunc(v / quantum) * quantum; }

/// T7: aligns each block of products and the sum at the largest exponent, keeps `extra` more bits,
/// truncates, and truncates the sum to f32.
double truncating(std::span<const std::pair<double, double>> products, std::size_t block,
                  int extra) {
  constexpr int kDigits = 24;
  double sum = 0.0;
  for (std::size_t k = 0; k < products.size(); k += block) {
    std::vector<double> terms{sum};
    for (const auto& [a, b] : products.subspan(k, std::min(block, products.size() - k)))
      terms.push_back(a * b);
    double largest = 0.0;
    for (const double t : terms) largest = std::max(largest, std::abs(t));
    if (!(largest > 0) || !std::isfinite(largest)) continue;
    const double quantum = std::ldexp(1.0, std::ilogb(largest) - (kDigits - 1) - extra);
    double exact = 0.0;  // exact in f64: all terms are multiples of the quantum
    for (const double t : terms) exact += cut_off(t, quantum);
    sum = exact == 0 ? 0.0 : cut_off(exact, std::ldexp(1.0, std::ilogb(exact) - (kDigits - 1)));
  }
  return sum;
}

struct Core {
  const char* declaration;
  std::size_t block;
  int extra;
};
constexpr Core kCores[]{{"adding=v100", 4, 0},
                        {"adding=a100", 8, 1},
                        {"adding=h100", 16, 2},
                        {"adding=truncating:32,2", 32, 2}};

}  // namespace

std::vector<Emulation> emulations(const Products& products) {
  IntervalSum exact;
  for (const auto& [a, b] : products) exact.add(a, b);
  const double right = exact.sum().value;
  Products backwards(products.rbegin(), products.rend());
  std::vector<Emulation> all;
  const auto add = [&](std::string words, double sum) {
    all.push_back({std::move(words), "", sum - right});
  };
  for (const bool fused : {true, false}) {
    const Chain chain{fused};
    const auto wide = [](float v) { return static_cast<double>(v); };
    add("a chain", wide(chain.of(products)));
    add("a chain from the end", wide(chain.of(backwards)));
    for (const std::size_t lanes : {4U, 8U, 16U, 32U, 64U})
      add(fmt::format("{} lanes", lanes), wide(in_lanes(products, lanes, chain)));
    for (const std::size_t block : {64U, 128U, 256U, 512U})
      add(fmt::format("blocks of {}", block), wide(in_blocks(products, block, chain)));
    add("pairs", wide(in_pairs(products, chain)));
  }
  for (const Core& core : kCores)
    all.push_back({"truncating sums", core.declaration,
                   truncating(products, core.block, core.extra) - right});
  return all;
}

std::optional<Emulation> explained_by(const Products& products, double deviation) {
  for (Emulation& e : emulations(products)) {
    const double ratio = e.deviation / deviation;
    if (ratio >= 0.5 && ratio <= 2.0) return std::move(e);
  }
  return std::nullopt;
}

}  // namespace shardproof::bounds
