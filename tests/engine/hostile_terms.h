#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shardproof {

/// A dot product's operands, of a kind that is hard to sum.
struct DotTerms {
  std::vector<float> x, y;
  void add(float a, float b) {
    x.push_back(a);
    y.push_back(b);
  }
};

/// Draws dot products by kind, from a seed.
class HostileTerms {
 public:
  enum class Kind { normal, heavy_tailed, cancelling, ties, denormal, overflowing, patterns };
  static constexpr Kind kKinds[] = {Kind::normal,  Kind::heavy_tailed, Kind::cancelling,
                                    Kind::ties,    Kind::denormal,     Kind::overflowing,
                                    Kind::patterns};
  static std::string name(Kind kind) {
    static const char* const names[] = {"normal",   "heavy_tailed", "cancelling", "ties",
                                        "denormal", "overflowing",  "patterns"};
    return names[static_cast<std::size_t>(kind)];
  }

  explicit HostileTerms(std::uint64_t seed) : random_(seed) {}

  int within(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }

  /// About `n` terms in random order.
  DotTerms draw(Kind kind, int n) {
    DotTerms t;
    switch (kind) {
      case Kind::normal:
        for (int k = 0; k < n; ++k) t.add(scaled(-28, -16), scaled(-28, -20));
        break;
      case Kind::heavy_tailed:
        for (int k = 0; k < n; ++k) t.add(scaled(-100, 60), scaled(-100, 60));
        break;
      case Kind::cancelling: {  // pairs of opposite terms, and perhaps a speck left over
        const bool wide = coin();
        for (int k = 0; k < (n + 1) / 2; ++k) {
          const float a = wide ? scaled(-90, 40) : scaled(-28, -16);
          const float b = wide ? scaled(-90, 40) : scaled(-28, -20);
          t.add(a, b);
          t.add(-a, b);
        }
        if (coin()) t.add(sign() * std::ldexp(1.0F, wide ? -120 : -45), 0x1p-25F);
        break;
      }
      case Kind::ties: {  // half an ulp of f32, give or take half an ulp of f64 and a speck
        const float s = sign() * std::ldexp(1.0F, within(-20, 20));
        t.add(static_cast<float>(within(0x800000, 0xffffff)), s * 0x1p-23F);
        t.add(s, 0x1p-24F);
        if (within(0, 3) != 0) t.add(s, sign() * 0x1p-53F);
        if (within(0, 3) != 0) t.add(s, sign() * std::ldexp(1.0F, coin() ? -62 : -110));
        break;
      }
      case Kind::denormal: {
        const bool both = coin();
        for (int k = 0; k < n; ++k) t.add(tiny(), both ? tiny() : scaled(-40, -16));
        break;
      }
      case Kind::overflowing: {  // products about 2^256, or about the largest f32
        const bool far = coin();
        for (int k = 0; k < n; ++k)
          t.add(sign() * std::numeric_limits<float>::max(),
                far ? scaled(90, 107) : scaled(-30, -18));
        break;
      }
      case Kind::patterns:
        for (int k = 0; k < n; ++k) t.add(finite_pattern(), finite_pattern());
        break;
    }
    return shuffled(std::move(t));
  }

  bool coin() { return random_() % 2 == 0; }
  float sign() { return coin() ? 1.0F : -1.0F; }

 private:
  /// A random 21-bit integer times a power of two in that range.
  float scaled(int low, int high) {
    return std::ldexp(static_cast<float>(within(-0xfffff, 0xfffff)), within(low, high));
  }
  float tiny() { return std::bit_cast<float>(static_cast<std::uint32_t>(random_() & 0x807fffff)); }
  float finite_pattern() {
    for (;;)
      if (const float v = std::bit_cast<float>(static_cast<std::uint32_t>(random_()));
          std::isfinite(v))
        return v;
  }
  DotTerms shuffled(DotTerms t) {
    for (std::size_t k = t.x.size(); k > 1; --k) {
      const std::size_t other = random_() % k;
      std::swap(t.x[k - 1], t.x[other]);
      std::swap(t.y[k - 1], t.y[other]);
    }
    return t;
  }

  std::mt19937_64 random_;
};

/// Row-major a [M,K] and b [K,N] built around one hostile dot product: row 0 and column 0 are it,
/// the others its sign flips and what is left of it when terms are struck out.
struct HostileMatrices {
  std::int64_t M, N, K;
  std::vector<float> a, b;

  /// K is the least multiple of `divisor` that holds the terms; zero terms fill it up.
  HostileMatrices(HostileTerms& draw, const DotTerms& terms, std::int64_t rows,
                  std::int64_t columns, std::int64_t divisor = 1)
      : M(rows), N(columns) {
    const auto n = static_cast<std::int64_t>(terms.x.size());
    K = (n + divisor - 1) / divisor * divisor;
    a.assign(static_cast<std::size_t>(M * K), 0.0F);
    b.assign(static_cast<std::size_t>(K * N), 0.0F);
    const auto fill = [&](std::vector<float>& to, const std::vector<float>& from,
                          std::int64_t start, std::int64_t stride, bool strike) {
      const float s = start == 0 ? 1.0F : draw.sign();
      for (std::int64_t k = 0; k < n; ++k)
        if (start == 0 || !strike || draw.coin())
          to[static_cast<std::size_t>(start + k * stride)] = s * from[static_cast<std::size_t>(k)];
    };
    for (std::int64_t i = 0; i < M; ++i) fill(a, terms.x, i * K, 1, i % 2 == 1);
    for (std::int64_t j = 0; j < N; ++j) fill(b, terms.y, j, N, j % 3 == 2);
  }
};

}  // namespace shardproof
