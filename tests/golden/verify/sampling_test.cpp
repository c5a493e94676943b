// Random sampling: the search on shards against the sort of the whole, every draw there is, what
// the judge sees of it, and what must not change a token.
#include "engine/ops/sampling.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "engine/collectives/collectives.h"
#include "engine/numeric/mass.h"
#include "engine/run/inference.h"
#include "golden/verify/verify.h"
#include "oracle/model/detail/sampling.h"
#include "tests/weights/expect_error.h"
#include "weights/storage/generator.h"

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
    const Drawn drawn = draw(shards, all, draws, threads());
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
  const Drawn drawn = draw(shards, all, draws, threads());
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

// ---- whole runs

constexpr const char* kModel = "model=palm-tiny,layers=1,E=12,F=12,H=12,Q=2,V=24 ";

TEST(RandomSampling, IsEqualInBothRegimesAndWithEveryCut) {
  OracleMemo memo;
  for (const char* cut : {"sample=random", "temperature=0.1", "top_k=5", "top_p=0.9",
                          "top_k=7 top_p=0.5 temperature=0.3", "top_k=1", "top_p=1e-9"})
    for (const char* regime : {"exact", "f32"})
      for (const char* torus : {"1x1x1", "2x2x3", "1x2x1"}) {
        const Case c =
            parse_case(std::string("prefill=ws2d:heads decode=ws2d:batch batch=12 prompt=3 "
                                   "chunk=2 gen=3 seed=6 ") +
                       kModel + "regime=" + regime + " torus=" + torus + " " + cut);
        const Judgement j = verify_case(c, memo);
        EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << ": " << j.explanation();
      }
}

TEST(RandomSampling, OfRowsOfUnequalLengthCountsTheTokensOfEachRow) {
  OracleMemo memo;
  for (const char* lengths : {"1,4,2", "ragged", "3,1"})
    for (const char* regime : {"exact", "f32"})
      for (int chunk : {1, 2, 4}) {
        const Case c = parse_case(fmt::format(
            "torus=2x1x3 prefill=ws2d:heads decode=ws2d:batch batch=6 prompt=4 gen=3 seed=6 "
            "top_p=0.9 top_k=9 lengths={} regime={} chunk={} {}",
            lengths, regime, chunk, kModel));
        const Judgement j = verify_case(c, memo);
        EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << ": " << j.explanation();
      }
}

/// Changes one number of a value on its last chip.
FaultHooks change(const std::string& name) {
  FaultHooks hooks;
  hooks.result = [name](const Scope& scope, const Program& program, const Op&,
                        const ValueDecl& result, Sharded& value) {
    if (program.name != "sample" || scope.pass != "decode.1" || result.role.name != name) return;
    const int chip = value.torus().chips() - 1;
    if (value.stores_int32())
      value.i32_of(chip).back() ^= 1;
    else
      value.f32_of(chip).back() = std::nextafter(value.f32_of(chip).back(), 2.0F);
  };
  return hooks;
}

TEST(RandomSampling, ShowsAChangeOfEachOfItsValues) {
  OracleMemo memo;
  for (const char* regime : {"exact", "f32"})
    for (const char* name :
         {"chances", "top_k_floor", "top_k_counts", "top_k_chances", "top_p_floor", "top_p_sums",
          "top_p_chances", "masses", "hits", "drawn", "token"}) {
      VerifyOptions options;
      options.faults = change(name);
      const Case c = parse_case(std::string("torus=2x1x3 prefill=ws2d:heads batch=6 prompt=2 gen=3 "
                                            "top_k=9 top_p=0.8 regime=") +
                                regime + " " + kModel);
      const Judgement j = verify_case(c, memo, options);
      ASSERT_NE(j.difference(), nullptr) << name << ": " << j.explanation();
      EXPECT_TRUE(j.difference()->step.starts_with("decode.1.sample.")) << j.difference()->step;
      EXPECT_NE(j.difference()->checkpoint.find(name), std::string::npos)
          << j.difference()->checkpoint;
    }
}

TEST(RandomSampling, ShowsALostTransferOfASearch) {
  OracleMemo memo;
  for (const OpKind kind : {OpKind::top_k, OpKind::top_p}) {
    VerifyOptions options;
    options.faults.plan = [kind](const Scope&, const Program&, const Op& op, Moves& moves) {
      if (op.kind == kind) moves.pieces.back().pop_back();
    };
    const Judgement j = verify_case(
        parse_case(std::string("torus=2x1x3 prefill=ws2d:heads batch=6 prompt=2 gen=2 top_k=9 "
                               "top_p=0.8 ") +
                   kModel),
        memo, options);
    ASSERT_NE(j.difference(), nullptr) << j.explanation();
    EXPECT_NE(j.difference()->op.find(to_string(kind)), std::string::npos) << j.difference()->op;
  }
}

TEST(RandomSampling, ThatOverflowsIsRefused) {
  OracleMemo memo;
  const Judgement j = verify_case(
      parse_case(std::string("torus=2x1x3 prefill=ws1d temperature=1e-300 ") + kModel), memo);
  EXPECT_EQ(j.verdict, Verdict::refused);
  EXPECT_NE(j.explanation().find("oracle_finite: the logit"), std::string::npos) << j.explanation();
}

TEST(RandomSampling, IsLeftOutOfTheField) {
  EXPECT_EQ(label_of([] { make_plan(parse_case("regime=field top_p=0.9")); }), "case_sampling");
  OracleMemo memo;
  VerifyOptions options;
  options.also_field = true;
  const Judgement j = verify_case(
      parse_case(std::string("torus=2x1x3 prefill=ws1d batch=6 prompt=2 gen=2 top_p=0.8 ") +
                 kModel),
      memo, options);
  EXPECT_EQ(j.verdict, Verdict::equal) << j.explanation();
  EXPECT_TRUE(j.field.has_value());
}

/// The tokens of these rows of a prompt, each drawn by its own number.
std::vector<std::vector<std::int32_t>> tokens(const std::string& line,
                                              const std::vector<std::int64_t>& rows, int pool = 1) {
  RunPlan plan =
      make_plan(parse_case(std::string("gen=6 seed=3 batch=12 prompt=5 ") + kModel + line));
  const Case& c = plan.given;
  const IntTensor all = generate_prompt(c.model, 3, 12, 5);
  plan.row_ids = rows;
  plan.row_ids.resize(12, -1);
  IntTensor prompt({12, 5});
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::copy_n(all.data.begin() + rows[r] * 5, 5,
                prompt.data.begin() + static_cast<std::ptrdiff_t>(r) * 5);
  Threads of_run(pool);
  const IntTensor made = run_inference(plan, generate_weights(c.model, 3), prompt, of_run);
  std::vector<std::vector<std::int32_t>> found;
  for (std::size_t r = 0; r < rows.size(); ++r)
    found.emplace_back(made.data.begin() + static_cast<std::ptrdiff_t>(r) * 6,
                       made.data.begin() + static_cast<std::ptrdiff_t>(r + 1) * 6);
  return found;
}

TEST(RandomSampling, DependsOnNeitherLayoutNorChunksNorThreadsNorThePlaceOfARow) {
  const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (const char* cut : {" top_p=0.9", " temperature=0.2 top_k=6"}) {
    const auto known = tokens(std::string("torus=1x1x1 prefill=ws1d:heads") + cut, all);
    // Greedy rows repeat themselves; these do not, and rows differ.
    EXPECT_NE(known[0], known[1]);
    EXPECT_NE(known, tokens("torus=1x1x1 prefill=ws1d:heads", all));
    for (const char* layout :
         {"torus=2x2x3 prefill=ws1d:heads", "torus=2x1x3 prefill=ws2d:batch",
          "torus=2x2x3 prefill=ws2d:bfirst-xyz", "torus=3x2x2 prefill=wg-xyz decode=ws2d:batch"}) {
      EXPECT_EQ(tokens(std::string(layout) + cut, all), known) << layout;
      for (int chunk = 1; chunk < 5; ++chunk)
        EXPECT_EQ(tokens(std::string(layout) + cut + " chunk=" + std::to_string(chunk), all), known)
            << layout << " " << chunk;
      EXPECT_EQ(tokens(std::string(layout) + cut, all, 7), known) << layout;
      const std::vector<std::int64_t> some{3, 0, 7};
      const auto few = tokens(std::string(layout) + cut, some);
      for (std::size_t r = 0; r < some.size(); ++r)
        EXPECT_EQ(few[r], known[static_cast<std::size_t>(some[r])]) << layout << " row " << some[r];
    }
  }
}

}  // namespace
}  // namespace shardproof
