// Masks of keys that lie in blocks, as those of chips; and masks where what they hide means
// nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/golden/diagnosis/planted.h"

namespace shardproof::diagnosis {
namespace {

const Torus kOne(1, 1, 1);
constexpr std::size_t kTokens = 8, kHeads = 24;
const std::string kLine =
    "model=palm-tiny,layers=2,E=16,F=24,H=24,K=2,Q=4,V=48 batch=2 prompt=8 gen=1 seed=34";
/// Whether a query sees a key.
using Sees = std::function<bool(std::size_t query, std::size_t key)>;

class BlockMasks : public testing::Test {
 protected:
  BlockMasks() {
    fused.texts = 0;
    for (const char* name : {"score", "max", "exp", "denom"})
      std::erase_if(fused.dump, [&](const auto& value) {
        return value.first.ends_with("." + std::string(name));
      });
  }

  double dot(std::size_t b, std::size_t l, std::size_t h, std::size_t m) const {
    const auto &q = p.value(kAt + "q_rot"), &k = p.value(kAt + "k_cache");
    double sum = 0.0;
    for (std::size_t c = 0; c < 4; ++c)
      sum += q.data[((b * kTokens + l) * kHeads + h) * 4 + c] *
             k.data[((b * kTokens + m) * 2 + h / 12) * 4 + c];
    return sum / 2;
  }
  /// The value that is of(b, l, h, m) where a query sees a key, elsewhere `hidden`.
  Planted::Value scores(const Sees& sees, double hidden = 0.0) const {
    return each(p.value(kAt + "score"), [&](double, std::size_t i) {
      const std::size_t m = i % kTokens, n = i / kTokens, h = n % kHeads, l = n / kHeads % kTokens;
      return sees(l, m) ? dot(n / kHeads / kTokens, l, h, m) : hidden;
    });
  }
  /// The largest scores.
  Planted::Value largest(const Sees& sees) const {
    const Planted::Value all = scores(sees, -1e30);
    return each(p.value(kAt + "max"), [&](double, std::size_t n) {
      const auto row = all.data.begin() + static_cast<std::ptrdiff_t>(n * kTokens);
      return *std::max_element(row, row + kTokens);
    });
  }
  Planted::Value attention(const Sees& sees) const {
    const Planted::Value all = scores(sees, -1e30);
    const auto& v = p.value(kAt + "v_cache");
    return each(p.value(kAt + "attn"), [&](double, std::size_t i) {
      const std::size_t n = i / 4, b = n / kHeads / kTokens, group = n % kHeads / 12;
      double sum = 0.0, mix = 0.0;
      for (std::size_t m = 0; m < kTokens; ++m) {
        const double e = std::exp(all.data[n * kTokens + m]);
        sum += e;
        mix += e * v.data[((b * kTokens + m) * 2 + group) * 4 + i % 4];
      }
      return mix / sum;
    });
  }
  Planted::Said ask_fused(const Sees& sees) { return fused.ask(kAt + "attn", attention(sees)); }

  struct OfBlocks {
    const char* words;
    std::function<bool(std::size_t query, std::size_t key, std::size_t width)> sees;
  };
  const std::vector<OfBlocks> of_blocks{
      {"each query also sees those of later blocks",
       [](auto l, auto m, auto w) { return m <= l || m / w > l / w; }},
      {"each query also sees those behind its own of its block",
       [](auto l, auto m, auto w) { return m / w <= l / w; }},
      {"each query sees those of its own block alone",
       [](auto l, auto m, auto w) { return m <= l && m / w == l / w; }},
      {"each query sees those of later blocks, not of earlier ones",
       [](auto l, auto m, auto w) { return m / w == l / w ? m <= l : m > l; }},
      {"each query sees those of every block up to its place in its own",
       [](auto l, auto m, auto w) { return m % w <= l % w; }}};

  Planted p{kLine};
  Planted fused{kLine};  ///< of a kernel that keeps no scores
};

bool causal(std::size_t query, std::size_t key) { return key <= query; }

TEST_F(BlockMasks, OfBlocks) {
  for (const char* name : {"max", "exp", "denom"}) p.dump.erase(kAt + name);
  expect_right(p.ask(kAt + "score", scores(causal)));
  expect_right(ask_fused(causal));
  for (const OfBlocks& mask : of_blocks)
    for (const std::size_t n : {2U, 4U}) {
      const Sees sees = [&](std::size_t l, std::size_t m) { return mask.sees(l, m, kTokens / n); };
      const std::string words =
          fmt::format("mask: {} blocks of {} keys: {}", n, kTokens / n, mask.words);
      expect_first(p.ask(kAt + "score", scores(sees), kOne), words);
      if (n == 4) expect_first(ask_fused(sees), words);
    }
}

// What they hide holds a number far below all others.
TEST_F(BlockMasks, OfBlocksThatScoresShow) {
  for (const char* name : {"max", "exp", "denom"}) p.dump.erase(kAt + name);
  p.masked_any = true;
  expect_right(p.ask(kAt + "score", scores(causal, -1e30)));
  for (const std::size_t n : {2U, 4U})
    expect_first(
        p.ask(kAt + "score",
              scores([&](auto l, auto m) { return of_blocks[2].sees(l, m, kTokens / n); }, -1e30)),
        fmt::format("mask: {} blocks of {} keys: {}", n, kTokens / n, of_blocks[2].words));
}

TEST_F(BlockMasks, OfAnyOtherKeysAreNotExplained) {
  for (const char* name : {"max", "exp", "denom"}) p.dump.erase(kAt + name);
  for (const Sees& sees : {Sees([](auto l, auto m) { return m <= l || m % 3 == 1; }),
                           Sees([](auto l, auto m) { return m == l || m * m % 5 < l % 4; })}) {
    expect_unexplained(p.ask(kAt + "score", scores(sees), kOne), "scores");
    expect_unexplained(ask_fused(sees), "attention");
  }
  // Nor blocks of another extent in some of the queries.
  expect_unexplained(ask_fused([&](auto l, auto m) {
                       return of_blocks[0].sees(l, m, l < 4 ? std::size_t{2} : std::size_t{4});
                     }),
                     "blocks of two extents");
}

// Where masked slots mean nothing, what follows from the scores is of those that queries and keys
// imply, whatever stands there.
TEST_F(BlockMasks, OfScoresThatMeanNothing) {
  p.masked_any = true;
  const Sees all = [](auto, auto) { return true; };
  for (const double hidden : {0.0, -1e30, HUGE_VAL}) {
    p.dump.at(kAt + "score") = Planted::f32(scores(causal, hidden), p.value(kAt + "score").shape);
    for (const char* name : {"exp", "denom"}) p.dump.erase(kAt + name);
    expect_right(p.ask(kAt + "max", largest(causal)));
    expect_first(p.ask(kAt + "max", largest(all)), "mask: no mask: each query sees all keys");
    expect_first(p.ask(kAt + "max", largest([](auto l, auto m) { return m <= l + 1; })),
                 "mask: each query also sees the key behind its own");
    expect_first(
        p.ask(kAt + "max", largest([&](auto l, auto m) { return of_blocks[0].sees(l, m, 2); })),
        "mask: 4 blocks of 2 keys: each query also sees those of later blocks");
  }
}

}  // namespace
}  // namespace shardproof::diagnosis
