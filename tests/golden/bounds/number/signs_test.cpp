// What no interval sees, signs of errors do; and of right sums they are fair.
#include "golden/bounds/number/signs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

namespace shardproof::bounds {
namespace {

constexpr std::size_t kRows = 128, kTerms = 256, kColumns = 160;

using Floats = std::vector<float>;

/// Operands, and what their product is: exact, and in f32.
struct Product {
  Floats x = Floats(kRows * kTerms), w = Floats(kTerms * kColumns);

  enum Kind { normal, heavy, positive };

  explicit Product(std::uint64_t seed, Kind kind = normal) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> fair;
    std::student_t_distribution<float> tails(4.0F);
    for (float& v : x) v = kind == heavy ? tails(random) : fair(random);
    for (float& v : w) v = fair(random) / 32.0F;
    if (kind != positive) return;
    for (Floats* const part : {&x, &w})
      for (float& v : *part) v = std::abs(v);
  }

  /// In blocks of so many terms, each a chain; `add` is an addition.
  template <class Add>
  Floats of(std::size_t block, Add&& add) const {
    Floats y(kRows * kColumns, 0.0F);
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t b = 0; b < kTerms; b += block) {
        Floats part(kColumns, 0.0F);
        for (std::size_t k = b; k < b + block; ++k)
          for (std::size_t c = 0; c < kColumns; ++c)
            part[c] = add(part[c], x[i * kTerms + k] * w[k * kColumns + c]);
        for (std::size_t c = 0; c < kColumns; ++c)
          y[i * kColumns + c] = add(y[i * kColumns + c], part[c]);
      }
    return y;
  }
  Floats of(std::size_t block) const {
    return of(block, [](float a, float b) { return a + b; });
  }

  Residues residues(const Floats& y) const {
    Residues r{kRows, kColumns, {}, {}, {}, 8, 0x1p-23 * static_cast<double>(kTerms)};
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t c = 0; c < kColumns; ++c) {
        double exact = 0.0, size = 0.0;
        for (std::size_t k = 0; k < kTerms; ++k) {
          const double p =
              static_cast<double>(x[i * kTerms + k]) * static_cast<double>(w[k * kColumns + c]);
          exact += p;
          size += std::abs(p);
        }
        r.exact.push_back(exact);
        r.residue.push_back(static_cast<double>(y[i * kColumns + c]) - exact);
        r.deviation.push_back(0x1p-24 * std::sqrt(kTerms + 1.0) * (size + std::abs(exact)) / 2);
      }
    return r;
  }
};

/// Each number times 1 + by, rounded.
void scale(Floats& y, double by, const std::function<bool(std::size_t)>& where) {
  for (std::size_t i = 0; i < y.size(); ++i)
    if (where(i)) y[i] = static_cast<float>(static_cast<double>(y[i]) * (1 + by));
}

std::string only(const std::vector<std::string>& texts) {
  EXPECT_EQ(texts.size(), 1U) << (texts.empty() ? "" : texts.back());
  return texts.empty() ? "" : texts[0];
}

TEST(Signs, OfRightSumsAreFair) {
  for (std::uint64_t seed = 0; seed < 12; ++seed)
    for (const std::size_t block : {kTerms, std::size_t{64}, std::size_t{1}}) {
      const Product p(seed, static_cast<Product::Kind>(seed % 3));
      const std::vector<std::string> texts = signs(p.residues(p.of(block)));
      EXPECT_TRUE(texts.empty()) << seed << " " << block << ": " << texts[0];
    }
}

TEST(Signs, ShowAScaleThatNoIntervalSees) {
  const Product p(1);
  Floats y = p.of(64);
  scale(y, 1e-6, [](std::size_t) { return true; });
  const std::string text = only(signs(p.residues(y)));
  EXPECT_TRUE(text.starts_with("scale off by +")) << text;
  EXPECT_TRUE(text.ends_with("): below what a right order could hide, but not by chance")) << text;
  y = p.of(64);
  scale(y, 1.2e-7, [](std::size_t) { return true; });
  EXPECT_TRUE(only(signs(p.residues(y))).starts_with("scale off by +"));
}

TEST(Signs, NameTheHeadTheRowAndTheColumn) {
  const Product p(2);
  const struct {
    const char* where;
    std::function<bool(std::size_t)> in;
    double by;
  } kFaults[] = {
      {"head 0: ", [](std::size_t i) { return i % kColumns < 8; }, 1e-6},
      {"head 19: ", [](std::size_t i) { return i % kColumns >= 152; }, 1e-6},
      {"row 0: ", [](std::size_t i) { return i < kColumns; }, -1e-4},
      {"row 127: ", [](std::size_t i) { return i >= 127 * kColumns; }, 1e-4},
      {"column 159: ", [](std::size_t i) { return i % kColumns == 159; }, 1e-4},
  };
  for (const auto& fault : kFaults) {
    Floats y = p.of(64);
    scale(y, fault.by, fault.in);
    const std::vector<std::string> texts = signs(p.residues(y));
    ASSERT_FALSE(texts.empty()) << fault.where;
    EXPECT_TRUE(texts[0].starts_with(fault.where)) << fault.where << texts[0];
  }
}

TEST(Signs, ShowWhatIsAddedToAll) {
  const Product p(3);
  Floats y = p.of(64);
  for (float& v : y) v += 3e-6F;
  const std::vector<std::string> texts = signs(p.residues(y));
  ASSERT_FALSE(texts.empty());
  EXPECT_TRUE(texts.back().starts_with("off by +")) << texts.back();
}

bool any_starts(const Residues& of, const std::string& with) {
  for (const std::string& text : signs(of))
    if (text.starts_with(with)) return true;
  return false;
}

/// A row or a column of an operand with fewer digits, to nearest: no sign shows it.
TEST(Signs, ShowTheRowOrColumnOfARoundedOperand) {
  const Product p(4);
  const auto tf32 = [](float v) {
    const float large = 0x1.8p13F * std::abs(v);
    return (v + large) - large;
  };
  Product other = p;
  for (std::size_t k = 0; k < kTerms; ++k) other.x[127 * kTerms + k] = tf32(p.x[127 * kTerms + k]);
  EXPECT_TRUE(any_starts(p.residues(other.of(64)), "row 127: its errors are "));
  other = p;
  for (std::size_t k = 0; k < kTerms; ++k) other.w[k * kColumns] = tf32(p.w[k * kColumns]);
  EXPECT_TRUE(any_starts(p.residues(other.of(64)), "column 0: its errors are "));
}

TEST(Signs, OfSumsThatTruncateSaySo) {
  const Product p(5);
  const Floats y = p.of(64, [](float a, float b) {
    const double sum = static_cast<double>(a) + static_cast<double>(b);
    const auto nearest = static_cast<float>(sum);
    return std::abs(static_cast<double>(nearest)) > std::abs(sum) ? std::nextafter(nearest, 0.0F)
                                                                  : nearest;
  });
  const std::vector<std::string> texts = signs(p.residues(y));
  ASSERT_FALSE(texts.empty());
  EXPECT_TRUE(texts[0].starts_with("sums truncate: scale off by -")) << texts[0];
}

TEST(Signs, SayNothingOfWhatRepeatsOrStandsAlone) {
  Product p(6);
  std::copy_n(p.x.begin(), kTerms, p.x.end() - static_cast<std::ptrdiff_t>(kTerms));
  Floats y = p.of(64);
  scale(y, 1e-6, [](std::size_t) { return true; });
  EXPECT_TRUE(signs(p.residues(y)).empty());
  Product q(7);
  for (std::size_t k = 0; k < kTerms; ++k) q.w[k * kColumns + 159] = q.w[k * kColumns];
  y = q.of(64);
  scale(y, 1e-6, [](std::size_t) { return true; });
  EXPECT_TRUE(signs(q.residues(y)).empty());
  EXPECT_TRUE(signs({1, 2, {1e-7, 1e-7}, {1.0, 2.0}, {}}).empty());
  // All errors zero.
  EXPECT_TRUE(signs({2, 2, {0, 0, 0, 0}, {1, 2, 3, 4}, {1, 1, 1, 1}}).empty());
}

}  // namespace
}  // namespace shardproof::bounds
