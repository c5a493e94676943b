// Traces of rows that go on from shared prefixes: every value is judged, at the batch of its pass;
// a changed one is named; what attention reads of a prefix is the trace's own, if it has it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "oracle/numeric/exact_sum.h"
#include "tests/golden/trace/own_trace.h"
#include "tests/golden/trace/written.h"
#include "tests/sanitized.h"
#include "tests/weights/expect_error.h"

namespace shardproof::dump {
namespace {

constexpr std::int64_t kP = 3, kN = 4, kB = 6;
/// Six rows, of which neighbours have the prefixes 0, 0, 1, 2, 2, 3.
const std::string kPrefixed =
    "torus=2x1x3 model=palm-tiny,layers=2,E=12,F=12,H=6,K=3,Q=4,V=12 prefill=ws2d:batch "
    "decode=ws1d:heads batch=6 prompt=6 chunk=2 gen=3 seed=5 prefix=3:4 ";
const std::string kUnequal = kPrefixed + "lengths=6,4,5 ";
const std::int64_t kPrefixOf[kB] = {0, 0, 1, 2, 2, 3};

TEST(PrefixesCompared, OfOwnRunsAllIsJudged) {
  for (const std::string& line :
       {kPrefixed, kUnequal, kUnequal + "weights=int8 act=bf16",
        kPrefixed + "regime=f32 schedule=ring", kUnequal + "regime=f32 act=bf16 wire=bf16"}) {
    const Verdict v = ExactRun(line).judged(own_trace(line));
    expect_all_judged(v, line);
    std::set<std::string> passes;
    for (const Row& row : v.rows) passes.insert(row.title.substr(0, row.title.find(".layer")));
    for (const char* pass : {"prefix.c0", "prefix.c1", "prefill.c0", "prefill.c1", "decode.2"})
      EXPECT_TRUE(passes.contains(pass)) << pass;
  }
}

TEST(PrefixesCompared, OfAnybodysTraceAllIsJudged) {
  for (const char* keys : {"", "block=serial", "act=bf16", "weights=int8"})
    for (const std::string& line : {kPrefixed + keys, kUnequal + keys}) {
      const ExactRun run(line);
      for (const char* arithmetic : {"exact", "f32"}) {
        if (arithmetic == std::string("f32") && std::string(keys) == "act=bf16") continue;
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
          std::mt19937_64 random(seed);
          expect_all_judged(run.judged(run.trace(run.values(), arithmetic, &random)),
                            fmt::format("{} {}", line, arithmetic));
        }
      }
    }
}

/// The values of prefixes have their batch and no more; an own cache has own slots, scores all
/// keys.
TEST(PrefixesCompared, ShapesAreThoseOfTheirPass) {
  const ExactRun run(kPrefixed);
  const auto shape = [&](const std::string& id, const std::string& meaning = "") -> Shape {
    const auto s = subject(id, meaning, run.source_case.model, run.passes, NumberFormat::f32);
    return s ? s->shape : Shape{};
  };
  EXPECT_EQ(shape("prefix.c1.layer0.k_cache"), (Shape{kN, kP, 3, 4}));
  EXPECT_EQ(shape("prefix.c1.layer0.score"), (Shape{kN, 1, 6, kP}));
  EXPECT_EQ(shape("prefix.c0.layer1.probs"), (Shape{kN, 2, 6, 2}));
  EXPECT_EQ(shape("prefill.c0.layer0.k_cache"), (Shape{kB, 2, 3, 4}));
  EXPECT_EQ(shape("prefill.c1.layer0.score"), (Shape{kB, 1, 6, kP + 3}));
  EXPECT_EQ(shape("decode.2.layer0.probs"), (Shape{kB, 1, 6, kP + 5}));
  EXPECT_EQ(shape("decode.2.layer0.v_cache"), (Shape{kB, 5, 3, 4}));
  // What a layer is given.
  const auto meant = [&](const std::string& id, const std::string& meaning) {
    const auto s = subject(id, meaning, run.source_case.model, run.passes, NumberFormat::f32);
    return s ? s->id + " " + s->dims : std::string("nothing");
  };
  EXPECT_EQ(meant("decode.1.layer1.pk", "prefix k_cache"), "prefix.c1.layer1.k_cache NTKQ");
  EXPECT_EQ(meant("decode.1.layer1.kc", "previous k_cache"), "prefill.c1.layer1.k_cache BMKQ");
  EXPECT_EQ(meant("prefix.c1.layer1.kc", "previous k_cache"), "prefix.c0.layer1.k_cache BMKQ");
  EXPECT_EQ(meant("prefill.c0.layer1.kc", "previous k_cache"), "nothing") << "it begins empty";
  EXPECT_EQ(meant("decode.1.layer1.p", "prefix score"), "nothing");
  EXPECT_EQ(shape("decode.1.layer1.pk", "prefix k_cache"), (Shape{kN, kP, 3, 4}));
}

TEST(PrefixesCompared, AChangedNumberOfAnyValueIsNamed) {
  const ExactRun run(kPrefixed);
  const std::vector<Written> right = run.values();
  OneInN next(9, "values");
  std::size_t turn = 0;
  for (const Written& w : right) {
    if (!next() || w.name.ends_with("ids") || w.name.ends_with("token")) continue;
    for (const char* arithmetic : {"exact", "f32"}) {
      if (arithmetic == std::string("f32") && turn % 3 != 0) continue;
      std::vector<Written> values = right;
      for (Written& other : values)
        if (other.name == w.name) {
          double most = 0.0;
          for (const double v : other.numbers) most = std::max(most, std::abs(v));
          other.numbers[turn++ % other.numbers.size()] += most + 1.0;
        }
      const Verdict v = run.judged(values, arithmetic);
      ASSERT_EQ(first_of(v), w.name) << arithmetic;
      EXPECT_EQ(v.rows[*v.first].wrong, 1) << w.name << " " << arithmetic;
    }
  }
}

/// Attention is judged by the prefixes' caches that the trace has; without them by those that
/// follow.
TEST(PrefixesCompared, AttentionIsJudgedFromTheTracesOwnPrefix) {
  const ExactRun run(kPrefixed);
  std::vector<Written> values = run.values();
  std::erase_if(values, [](const Written& w) {
    return w.name.starts_with("prefix.") && w.name.ends_with("_cache");
  });
  const Verdict without = run.judged(values, "f32");
  EXPECT_EQ(without.count(Fit::different), 0);
  EXPECT_EQ(without.count(Fit::loose), 0);
  EXPECT_EQ(without.whole - without.compared, 2 * 2 * 2) << "the caches of two passes";
  // A wrong cache of a prefix is different; so are the scores that do not follow from it, of the
  // rows that have the prefix.
  values = run.values();
  for (Written& w : values)
    if (w.name == "prefix.c1.layer1.k_cache")
      for (std::size_t i = 0; i < w.numbers.size(); ++i)
        if (i / (kP * 3 * 4) == 2) w.numbers[i] += 1.0;
  const Verdict v = run.judged(values, "f32");
  ASSERT_EQ(first_of(v), "prefix.c1.layer1.k_cache");
  int scores = 0;
  for (const Row& row : v.rows) {
    if (row.fit != Fit::different || !row.title.ends_with(".score")) continue;
    if (row.title.starts_with("prefix.c1.")) continue;
    ++scores;
    EXPECT_EQ(row.first->index.at(0), 3) << row.title;
    EXPECT_EQ(row.box.at(0), (std::vector<std::int64_t>{3, 4})) << row.title;
    EXPECT_LT(row.first->index.at(3), kP);
  }
  EXPECT_EQ(scores, 4) << "of two chunks and two steps";
}

/// What a query does not see may be anything where the trace says so: a key of the prefix is seen
/// by each, own keys up to its own, by their positions.
TEST(PrefixesCompared, MaskedKeysAreThoseBehindAQuerysPosition) {
  const ExactRun run(kPrefixed);
  std::vector<Written> values = run.values();
  int spoiled = 0;
  for (Written& w : values)
    if (w.name == "prefill.c0.layer0.score")
      for (std::size_t i = 0; i < w.numbers.size(); ++i) {
        const Shape index = global_index(w.shape, static_cast<std::int64_t>(i));
        if (index[3] > kP + index[1]) w.numbers[i] = -1e30, ++spoiled;
      }
  EXPECT_EQ(spoiled, kB * 6) << "the first of two queries does not see the second's key";
  dump::Dump d = run.trace(values, "f32");
  EXPECT_EQ(run.judged(d).exit_code(), 1);
  d.attributes["masked"] = "any";
  expect_all_judged(run.judged(d), "masked=any");
  named(values, "prefill.c0.layer0.score").numbers[kP - 1] = -1e30;
  d = run.trace(values, "f32");
  d.attributes["masked"] = "any";
  EXPECT_EQ(run.judged(d).exit_code(), 1);
}

/// A layer's cache of prefixes that is not as their passes left it, as the decode was given it.
TEST(PrefixesCompared, ACacheOfPrefixesThatWasHandedOverWronglyIsNamed) {
  const ExactRun run(kPrefixed);
  for (const char* arithmetic : {"exact", "f32"}) {
    dump::Dump d = run.trace(run.values(), arithmetic);
    Written w{"decode.1.layer0.pk", "NTKQ", {kN, kP, 3, 4}, {}, {{"meaning", "prefix k_cache"}}};
    const Tensor cache = run.value("prefix.c1.layer0.k_cache");
    w.numbers.assign(cache.data.begin(), cache.data.end());
    dump::Dump right = d;
    run.add(right, w, Mesh::parse("x y z", run.source_case.torus), nullptr);
    expect_all_judged(run.judged(right), arithmetic);
    std::swap_ranges(w.numbers.begin() + 36, w.numbers.begin() + 72, w.numbers.begin() + 72);
    run.add(d, w, Mesh::parse("x y z", run.source_case.torus), nullptr);
    const Verdict v = run.judged(d);
    ASSERT_TRUE(v.first.has_value());
    EXPECT_EQ(v.rows[*v.first].name, "decode.1.layer0.pk");
    EXPECT_EQ(v.rows[*v.first].box.at(0), (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(v.count(Fit::different), 1);
  }
}

/// Ids of prefixes are the writer's, of all rows that have them.
TEST(PrefixesCompared, ThePromptIsThatOfPrefixesAndRows) {
  const ExactRun run(kPrefixed);
  const IntTensor& ids = run.answer().inputs.at("prefix.c0.ids");
  ASSERT_EQ(ids.shape, (Shape{kN, 2}));
  std::vector<Written> values = run.values();
  named(values, "prefix.c0.ids").numbers = {1, 2, 3, 4, 5, 6, 7, 8};
  const dump::Dump d = run.trace(values, "f32");
  ExactRun::Read read(run, d);
  EXPECT_EQ(read.reference.ids("prefix.c0").data,
            (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(read.reference.case_ids("prefix.c0").data, ids.data);
  EXPECT_EQ(read.reference.ids("prefill.c0").data, run.answer().inputs.at("prefill.c0.ids").data);
  EXPECT_EQ(read.reference.ids("prefix.c1").data, run.answer().inputs.at("prefix.c1.ids").data);
  // The unsharded model has them, too: of its embeddings each prefix has its own.
  const auto embed =
      subject("prefix.c0.embed", "", run.source_case.model, run.passes, NumberFormat::f32);
  const Tensor& x = *read.reference.exact(*embed);
  const Tensor& table = *run.weights().at("embed");
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(x.data[i * 12], table.data[(i + 1) * 12] * run.source_case.model.embed_scale) << i;
}

/// Whose prefix each row has.
TEST(PrefixesCompared, RowsHaveThePrefixesOfTheirNeighbours) {
  const ExactRun run(kPrefixed);
  const Tensor prefix = run.value("prefix.c1.layer0.k_cache");
  const Tensor score = run.value("prefill.c0.layer0.score"),
               q = run.value("prefill.c0.layer0.q_rot");
  // The score of key 0, of head 0, by the cache that the row is to have: S / sqrt(4), to the bit.
  for (std::int64_t b = 0; b < kB; ++b) {
    const float* const query = &q.data[static_cast<std::size_t>(b * 2 * 6 * 4)];
    const float* const key = &prefix.data[static_cast<std::size_t>(kPrefixOf[b] * kP * 3 * 4)];
    EXPECT_EQ(score.data[static_cast<std::size_t>(b * 2 * 6 * (kP + 2))],
              oracle::sum_of_products({query, 4}, {key, 4}) / 2.0F)
        << b;
  }
}

TEST(PrefixesCompared, ACaseWithOtherPrefixesIsAnother) {
  const ExactRun run(kPrefixed);
  const dump::Dump d = run.trace(run.values(), "exact");
  for (const char* other : {"prefix=3:3", "prefix=2:4"}) {
    std::string line = kPrefixed;
    line.replace(line.find("prefix=3:4"), 10, other);
    EXPECT_EQ(label_of([&] { read_claim(d.attributes, line); }), "compare_case") << other;
  }
  read_claim(d.attributes, kPrefixed);
}

}  // namespace
}  // namespace shardproof::dump
