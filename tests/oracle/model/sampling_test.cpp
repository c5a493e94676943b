// Sampling by sorting, against numbers worked out by hand and 128-bit integers.
#include "oracle/model/detail/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "oracle/numeric/detail/natural.h"
#include "tests/weights/expect_error.h"
#include "weights/storage/generator.h"

namespace shardproof::oracle {
namespace {

__extension__ typedef unsigned __int128 Wide;

Natural natural(Wide value) {
  // 2^-149 is one unit.
  Natural sum;
  for (int bit = 0; bit < 128; ++bit)
    if ((value >> bit & 1) != 0) sum.add(std::ldexp(1.0F, bit - 149));
  return sum;
}

TEST(Natural, AddsMultipliesAndCompares) {
  std::mt19937_64 random(1);
  for (int n = 0; n < 300; ++n) {
    const std::uint64_t a = random() >> (random() % 64), b = random() >> (random() % 64);
    const std::uint64_t factor = random() >> (random() % 64);
    const int shift = static_cast<int>(random() % 60);
    Natural sum = natural(a);
    sum.add(natural(b));
    EXPECT_EQ(sum, natural(Wide{a} + b));
    EXPECT_EQ(natural(a).times(factor), natural(Wide{a} * factor));
    EXPECT_EQ(natural(a >> 8).times(1, shift), natural(Wide{a >> 8} << shift));
    EXPECT_EQ(natural(a) < natural(b), a < b);
    EXPECT_EQ(natural(a) >= natural(b), a >= b);
    EXPECT_EQ(natural(a).digit(0), a & 0xFFFF);
    EXPECT_EQ(natural(a).digit(3), a >> 48);
    EXPECT_EQ(natural(a).digit(40), 0U);
  }
  EXPECT_EQ(natural(0), Natural());
}

TEST(Natural, CountsEveryFloatExactly) {
  for (float v : {0x1p-149F, 0x1.8p-148F, 0x1.000002p-126F, 0.1F, 1.0F, 0x1.fffffep30F}) {
    Natural once, more;
    once.add(v);
    for (int i = 0; i < 5; ++i) more.add(v);
    EXPECT_EQ(more, once.times(5)) << v;
  }
  Natural shifted, carried;  // a carry through digits that were not there
  shifted.add(0x1.fffffep-20F, 1100);
  carried.add(0x1.fffffep-20F);
  EXPECT_EQ(shifted, carried.times(1, 1100));
  shifted.add(0x1p-149F, 1100 + 106);
  carried.add(0x1p-43F);
  EXPECT_EQ(shifted, carried.times(1, 1100));
  Natural one, least;
  one.add(1.0F);
  least.add(0x1p-149F);
  EXPECT_EQ(one, least.times(1, 149));
}

TEST(Chances, DivideInF64AndSubtractInF32) {
  const std::vector<float> logits{0.3F, -1.7F, 2.9F, 2.9F};
  for (const double T : {1.0, 0.7, 3.0}) {
    std::vector<float> t;
    for (float z : logits) t.push_back(static_cast<float>(static_cast<double>(z) / T));
    const std::vector<float> e = chances(logits, T);
    ASSERT_EQ(e.size(), logits.size());
    for (std::size_t v = 0; v < e.size(); ++v)
      EXPECT_EQ(e[v], static_cast<float>(std::exp(static_cast<double>(t[v] - t[2])))) << v;
    EXPECT_EQ(e[2], 1.0F);
    EXPECT_EQ(e[3], 1.0F);
  }
}

TEST(Chances, OfATemperatureThatOverflowsAreRefused) {
  EXPECT_EQ(message_of([] {
              chances(std::vector<float>{1.0F, 2.0F}, 1e-300);
            }),
            "oracle_finite: the logit 1 at temperature=1e-300 is inf");
  EXPECT_EQ(chances(std::vector<float>{0.0F, 0.0F}, 1e-300), (std::vector<float>{1.0F, 1.0F}));
}

TEST(TopK, KeepsEveryTieOfTheLast) {
  const std::vector<float> e{0.5F, 1.0F, 0.25F, 0.5F, 0.0F};
  EXPECT_EQ(top_k_floor(e, 1), 1.0F);
  EXPECT_EQ(top_k_floor(e, 2), 0.5F);
  EXPECT_EQ(kept(e, top_k_floor(e, 2)), (std::vector<float>{0.5F, 1.0F, 0.0F, 0.5F, 0.0F}));
  EXPECT_EQ(top_k_floor(e, 3), 0.5F);
  EXPECT_EQ(top_k_floor(e, 4), 0.25F);
  EXPECT_EQ(top_k_floor(e, 5), 0.0F);
  EXPECT_EQ(top_k_floor(e, 0), 0.0F);
}

TEST(TopP, ComparesRealNumbers) {
  // The sum is 2.25; 1 is 4/9 of it, 1 + 2·0.5 are 8/9.
  const std::vector<float> e{0.5F, 1.0F, 0.25F, 0.5F, 0.0F};
  EXPECT_EQ(top_p_floor(e, 5e-324), 1.0F);
  EXPECT_EQ(top_p_floor(e, 0.44), 1.0F);
  EXPECT_EQ(top_p_floor(e, 0.45), 0.5F);
  EXPECT_EQ(top_p_floor(e, 0.88), 0.5F);
  EXPECT_EQ(top_p_floor(e, 0.89), 0.25F);
  EXPECT_EQ(top_p_floor(e, 1.0), 0.25F);
  // Exactly enough is enough, and the next f64 above it is not.
  const std::vector<float> halves{1.0F, 0.5F, 0.5F};
  EXPECT_EQ(top_p_floor(halves, 0.5), 1.0F);
  EXPECT_EQ(top_p_floor(halves, std::nextafter(0.5, 1.0)), 0.5F);
  // A sum of floats would not see what is missing.
  const std::vector<float> tiny{1.0F, 0x1p-149F};
  EXPECT_EQ(top_p_floor(tiny, 1.0), 0x1p-149F);
  EXPECT_EQ(top_p_floor(tiny, std::nextafter(1.0, 0.0)), 1.0F);
}

TEST(Drawn, IsTheFirstTokenBeyondTheNumber) {
  const std::vector<float> e{0.0F, 0.5F, 0.0F, 1.0F, 0.5F, 0.0F};
  constexpr std::uint32_t kAll = 1U << 24;
  EXPECT_EQ(drawn_at(e, 0), 1);
  EXPECT_EQ(drawn_at(e, kAll / 4 - 1), 1);
  EXPECT_EQ(drawn_at(e, kAll / 4), 3);
  EXPECT_EQ(drawn_at(e, 3 * (kAll / 4) - 1), 3);
  EXPECT_EQ(drawn_at(e, 3 * (kAll / 4)), 4);
  EXPECT_EQ(drawn_at(e, kAll - 1), 4);
}

TEST(Drawn, IsKeyedByRowAndToken) {
  const std::vector<float> e(64, 1.0F);
  for (const Draw& key : {Draw{0, 0}, {0, 1}, {3, 0}, {3, 31}, {1 << 20, 5}}) {
    const std::uint64_t index =
        (static_cast<std::uint64_t>(key.row) << 32) + static_cast<std::uint64_t>(key.token);
    const std::uint32_t r = counter_random(9, "sample", index)[0] >> 8;
    EXPECT_EQ(drawn(e, 9, key), static_cast<std::int32_t>(r >> 18));
  }
  EXPECT_NE(counter_random(9, "sample", 1)[0], counter_random(9, "sample", 1ULL << 32)[0]);
}

TEST(Sampled, IsGreedyOrOfTheSupport) {
  Tensor logits({2, 4});
  logits.data = {0.0F, 5.0F, 5.0F, 1.0F, -3.0F, -2.0F, -4.0F, -2.0F};
  EXPECT_EQ(sampled(logits, {}).data, (std::vector<std::int32_t>{1, 1}));
  std::set<std::int32_t> met;
  for (std::int64_t i = 0; i < 200; ++i) {
    const IntTensor ids = sampled(logits, {{Sample::random, 1.0, 2, 1.0}, 5, {{0, i}, {1, i}}});
    EXPECT_TRUE(ids.data[0] == 1 || ids.data[0] == 2);
    EXPECT_TRUE(ids.data[1] == 1 || ids.data[1] == 3);
    met.insert(ids.data.begin(), ids.data.end());
  }
  EXPECT_EQ(met, (std::set<std::int32_t>{1, 2, 3}));
}

TEST(SearchSums, AreThoseOfTheThresholdsThatWereTried) {
  const std::vector<float> e{0.5F, 1.0F, 0.25F, 0.5F};
  const std::vector<std::uint32_t> counts = search_counts(e, 0.5F);
  ASSERT_EQ(counts.size(), std::size_t{kSearchRounds});
  // 0.5 is 0x3f000000: of 30 bits the upper six are set.
  for (int i = 0; i < kSearchRounds; ++i)
    EXPECT_EQ(counts[static_cast<std::size_t>(i)], i == 0  ? 4U
                                                   : i < 6 ? (i < 5 ? 4U : 3U)
                                                           : 1U)
        << i;
  const std::vector<std::uint32_t> sums = search_sums(e, 0.5F);
  ASSERT_EQ(sums.size(), std::size_t{(kSearchRounds + 1) * kSumWords});
  EXPECT_EQ(std::vector<std::uint32_t>(sums.begin(), sums.begin() + kSumWords),
            words_of(sum_of_chances(e)));
}

}  // namespace
}  // namespace shardproof::oracle
