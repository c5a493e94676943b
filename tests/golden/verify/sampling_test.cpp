// Random sampling, op by op: the search on shards against the sort of the whole, every draw there
// is.
#include "engine/ops/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "engine/collectives/collectives.h"
#include "engine/numeric/mass.h"
#include "oracle/model/detail/sampling.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

Threads& threads() {
  static Threads pool(1);
  return pool;
}

const Torus kTorus(2, 1, 2);
const Layout kSharded = Layout::parse("BV_zx");

Sharded over_chips(const Tensor& e) { return shard(e, kSharded, kTorus); }
Moves sums_of(const Tensor& e, std::int64_t words) {
  return all_reduce_moves(kTorus, {e.shape[0], words}, Axes::parse("zx"));
}

/// Chances of rows with many ties: few levels, neighbours of each other among them, 1 in each row.
class Chances {
 public:
  explicit Chances(std::uint64_t seed) : random_(seed) {}

  Tensor rows(std::int64_t B, std::int64_t V) {
    Tensor e({B, V});
    for (std::int64_t b = 0; b < B; ++b) {
      std::array<float, 4> levels{};
      for (float& level : levels) level = any();
      levels[1] = std::nextafter(levels[0], 0.0F);
      for (std::int64_t v = 0; v < V; ++v) e.data[at(b * V + v)] = levels[random_() % 4];
      e.data[at(b * V) + random_() % at(V)] = 1.0F;
    }
    return e;
  }
  double p() {
    switch (random_() % 4) {
      case 0:
        return 1.0;
      case 1:
        return static_cast<double>(1 + random_() % 16) / 16.0;
      case 2:
        return std::ldexp(1.0, -static_cast<int>(random_() % 1075));
      default:
        return std::ldexp(static_cast<double>(1 + (random_() >> 11)), -53);
    }
  }
  std::int64_t k(std::int64_t V) { return 1 + static_cast<std::int64_t>(random_() % at(V)); }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  float any() {
    switch (random_() % 6) {
      case 0:
        return 0.0F;
      case 1:
        return std::bit_cast<float>(static_cast<std::uint32_t>(random_() % 0x3F800000));
      case 2:
        return 0x1p-149F * static_cast<float>(random_() % 5);
      default:
        return std::ldexp(1.0F, -static_cast<int>(random_() % 6));
    }
  }
  std::mt19937_64 random_;
};

std::vector<float> floors(const Threshold& t) {
  // Every chip has found the same.
  for (const auto& chip : t.floor.f32())
    EXPECT_TRUE(std::equal(chip.begin(), chip.end(), t.floor.f32()[0].begin()));
  return {t.floor.f32()[0].begin(), t.floor.f32()[0].end()};
}

TEST(Thresholds, OfSearchAndSortKeepTheSameOfAMillionRowsWithTies) {
  constexpr std::int64_t kRows = 2000, kV = 8;
  const Torus pair(1, 1, 2);
  Chances chances(3);
  std::int64_t rows = 0, ties = 0;
  for (int batch = 0; rows < 1'000'000; ++batch, rows += kRows) {
    const Tensor e = chances.rows(kRows, kV);
    const Sharded shards = shard(e, Layout::parse("BV_z"), pair);
    const bool counts = batch % 2 == 0;
    const Moves sums = all_reduce_moves(
        pair, {kRows, counts ? kCountWords : std::int64_t{kSumWords}}, Axes::parse("z"));
    const std::int64_t k = chances.k(kV);
    const double p = chances.p();
    const Threshold found =
        counts ? top_k(shards, k, sums, threads()) : top_p(shards, p, sums, threads());
    const std::vector<float> mine = floors(found);
    const Tensor kept = assemble(found.kept);
    for (std::size_t b = 0; b < static_cast<std::size_t>(kRows); ++b) {
      const std::span<const float> row(e.data.data() + b * kV, kV);
      const float floor = counts ? oracle::top_k_floor(row, k) : oracle::top_p_floor(row, p);
      const std::vector<float> want = oracle::kept(row, floor);
      if (std::bit_cast<std::uint32_t>(mine[b]) != std::bit_cast<std::uint32_t>(floor) ||
          !std::equal(want.begin(), want.end(),
                      kept.data.begin() + static_cast<std::ptrdiff_t>(b * kV)))
        FAIL() << "row " << rows + static_cast<std::int64_t>(b) << " k=" << k << " p=" << p << ": "
               << mine[b] << " by search, " << floor << " by sorting";
      ties += std::count(row.begin(), row.end(), floor) > 1 ? 1 : 0;
    }
  }
  EXPECT_EQ(rows, 1'000'000);
  EXPECT_GT(ties, 300'000);
}

TEST(Thresholds, AddUpWhatTheOracleSays) {
  Chances chances(4);
  for (int n = 0; n < 40; ++n) {
    const Tensor e = chances.rows(3, 8);
    const double p = chances.p();
    const std::int64_t k = chances.k(8);
    const IntTensor sums =
        assemble_int(top_p(over_chips(e), p, sums_of(e, kSumWords), threads()).sums);
    const IntTensor counts =
        assemble_int(top_k(over_chips(e), k, sums_of(e, kCountWords), threads()).sums);
    for (std::size_t b = 0; b < 3; ++b) {
      const std::span<const float> row(e.data.data() + b * 8, 8);
      const auto same = [&](const IntTensor& mine, const std::vector<std::uint32_t>& want) {
        const auto first = mine.data.begin() + static_cast<std::ptrdiff_t>(b * want.size());
        return std::equal(want.begin(), want.end(), first, [](std::uint32_t w, std::int32_t m) {
          return static_cast<std::int64_t>(w) == m;
        });
      };
      EXPECT_TRUE(same(sums, oracle::search_sums(row, oracle::top_p_floor(row, p))));
      EXPECT_TRUE(same(counts, oracle::search_counts(row, oracle::top_k_floor(row, k))));
    }
  }
}

TEST(Mass, IsTheOraclesSum) {
  Chances chances(5);
  for (int n = 0; n < 2000; ++n) {
    const Tensor e = chances.rows(2, 9);
    const std::span<const float> a(e.data.data(), 9), b(e.data.data() + 9, 9);
    Mass mine, whole;
    for (float v : a) mine.add(v), whole.add(v);
    for (float v : b) whole.add(v);
    const oracle::Natural part = oracle::sum_of_chances(a);
    const oracle::Natural all = oracle::sum_of_chances(e.data);
    const Mass::Words words = mine.words();
    for (std::size_t w = 0; w < words.size(); ++w)
      ASSERT_EQ(static_cast<std::uint32_t>(words[w]), part.digit(w));
    Mass again;
    again.add(words);
    again.add(words);
    Mass twice = mine;
    for (float v : a) twice.add(v);
    EXPECT_EQ(again.words(), twice.words());
    const double p = chances.p();
    int exponent = 0;
    const auto integer = static_cast<std::uint64_t>(std::ldexp(std::frexp(p, &exponent), 53));
    EXPECT_EQ(mine.at_least(p, whole), part.times(1, 53 - exponent) >= all.times(integer)) << p;
    for (std::uint32_t r : {0U, 1U, 0x3FFFFFU, 0x400000U, 0x800000U, 0xFFFFFFU})
      EXPECT_EQ(mine.more_than(r, whole), part.times(1, 24) > all.times(r)) << r;
  }
}

TEST(Mass, IsComparedToTheLastBitOfTheShare) {
  Mass half, whole;
  half.add(1.0F);
  whole.add(1.0F);
  whole.add(1.0F);
  EXPECT_TRUE(half.at_least(0.5, whole));
  EXPECT_FALSE(half.at_least(std::nextafter(0.5, 1.0), whole));
  EXPECT_TRUE(half.at_least(std::nextafter(0.5, 0.0), whole));
  EXPECT_FALSE(half.more_than(1U << 23, whole));
  EXPECT_TRUE(half.more_than((1U << 23) - 1, whole));
}

TEST(Mass, TakesNothingForWhatIsNoChance) {
  Mass none, most, infinite;
  none.add(-1.0F);
  none.add(std::nanf(""));
  EXPECT_EQ(none.words(), Mass().words());
  most.add(0x1p31F);
  infinite.add(HUGE_VALF);
  EXPECT_EQ(infinite.words(), most.words());
}

/// How many of all 2^24 numbers fall on each of three tokens: those r with
/// r·Z < 2^24·(the sum of the tokens up to it), worked out in integers.
std::array<std::int64_t, 3> intervals(const std::array<float, 3>& e) {
  __extension__ using Wide = __int128;
  const auto units = [](float v) { return static_cast<Wide>(std::ldexp(v, 60)); };
  Wide Z = 0;
  for (float v : e) Z += units(v);
  std::array<std::int64_t, 3> counts{};
  Wide sum = 0;
  std::int64_t before = 0;
  for (std::size_t v = 0; v < 3; ++v) {
    sum += units(e[v]);
    const auto below = static_cast<std::int64_t>(((sum << 24) + Z - 1) / Z);
    counts[v] = below - before;
    before = below;
  }
  return counts;
}

TEST(Draws, OfAllNumbersMatchTheExactIntervals) {
  for (const std::array<float, 3>& e :
       {std::array{1.0F, 0.7F, 0.1F}, std::array{0.001F, 1.0F, 0x1p-24F},
        std::array{0.25F, 1.0F, 0.75F}}) {
    const std::array<std::int64_t, 3> exact = intervals(e);
    // Three tokens on two chips.
    Mass total, first;
    for (float v : e) total.add(v);
    first.add(e[0]);
    const std::span<const float> left(e.data(), 1), right(e.data() + 1, 2);
    std::array<std::int64_t, 3> counts{};
    for (std::uint32_t r = 0; r < 1U << 24; ++r) {
      Mass none;
      Mass before = first;
      const std::int64_t here = none.falls_on(left, r, total);
      ASSERT_EQ(here == 1, !first.more_than(r, total));
      ++counts[static_cast<std::size_t>(here < 1 ? 0 : 1 + before.falls_on(right, r, total))];
    }
    EXPECT_EQ(counts, exact);
    EXPECT_EQ(counts[0] + counts[1] + counts[2], 1 << 24);
    // The oracle at both ends of each interval.
    std::int64_t begin = 0;
    for (std::size_t v = 0; v < 3; ++v) {
      if (exact[v] == 0) continue;
      EXPECT_EQ(oracle::drawn_at(e, static_cast<std::uint32_t>(begin)),
                static_cast<std::int32_t>(v));
      begin += exact[v];
      EXPECT_EQ(oracle::drawn_at(e, static_cast<std::uint32_t>(begin - 1)),
                static_cast<std::int32_t>(v));
    }
  }
}

TEST(Draws, OfShardsAreTheOracles) {
  Chances chances(6);
  for (std::int64_t n = 0; n < 60; ++n) {
    const Tensor e = chances.rows(4, 12);
    const Draws draws{{Sample::random, 1.0, 0, 1.0}, 11, {{n, 0}, {0, n}, {5, 1}, {7, 2}}};
    const Sharded shards = over_chips(e);
    const Sharded all = all_gather(masses(shards, threads()), 'C', Axes::parse("zx"));
    const TokenDraw drawn = draw(shards, all, draws, threads());
    const Tensor hits = assemble(drawn.hit);
    const IntTensor ids = assemble_int(drawn.index);
    for (std::size_t b = 0; b < 4; ++b) {
      const std::span<const float> row(e.data.data() + b * 12, 12);
      const std::int32_t token = oracle::drawn(row, 11, draws.rows[b]);
      for (std::int32_t c = 0; c < 4; ++c) {
        const std::size_t i = b * 4 + static_cast<std::size_t>(c);
        EXPECT_EQ(hits.data[i], token / 3 == c ? 1.0F : 0.0F);
        EXPECT_EQ(ids.data[i], token / 3 == c ? token : 3 * c);
      }
    }
  }
}

TEST(Draws, AreOfTheRowThatAChipsBlockOfTheBatchHas) {
  // The same op with the batch sharded as well: no strategy does, a library's user may.
  Chances chances(8);
  const Tensor e = chances.rows(4, 6);
  const Draws draws{{Sample::random, 1.0, 0, 1.0}, 2, {{8, 0}, {3, 1}, {0, 2}, {9, 9}}};
  const Sharded shards = shard(e, Layout::parse("B_xV_z"), kTorus);
  const Sharded all = all_gather(masses(shards, threads()), 'C', Axes::parse("z"));
  const TokenDraw drawn = draw(shards, all, draws, threads());
  const IntTensor ids = assemble_int(drawn.index);
  const Tensor hits = assemble(drawn.hit);
  for (std::size_t b = 0; b < 4; ++b) {
    const std::int32_t token = oracle::drawn({e.data.data() + b * 6, 6}, 2, draws.rows[b]);
    const std::size_t c = static_cast<std::size_t>(token / 3);
    EXPECT_EQ(hits.data[2 * b + c], 1.0F);
    EXPECT_EQ(ids.data[2 * b + c], token);
  }
}

TEST(Weighing, RefusesATemperatureThatOverflows) {
  Tensor z({1, 4});
  z.data = {1.0F, 2.0F, 3.0F, 4.0F};
  Tensor best({1, 1});
  best.data = {4.0F};
  const Sharded logits = shard(z, kSharded, kTorus), top = shard(best, Layout::parse("BC"), kTorus);
  EXPECT_EQ(message_of([&] { weigh(logits, top, 1e-300, threads()); }),
            "engine_finite: the logit 4 at temperature=1e-300 is inf");
}

}  // namespace
}  // namespace shardproof
