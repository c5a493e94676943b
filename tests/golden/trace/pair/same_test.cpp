// Relations that hold whatever the model is: a right pair is the same or apart by rounding, and one
// stale slot, one shifted position, one row of another token is named.
#include <gtest/gtest.h>

#include "tests/golden/trace/pair/pairs.h"

namespace shardproof::dump {
namespace {

const std::string kRows = " batch=3 seed=3";

Dump engine_trace(const ExactRun& run) {
  Engine engine(run);
  return engine.trace(kAllNames);
}
Dump exact_trace(const ExactRun& run) { return run.trace(run.values(), "exact"); }

/// The prompt whole and in chunks.
class Chunked : public testing::Test {
 protected:
  Chunked()
      : whole_(kPairModel + kRows + " prompt=6 gen=2"),
        chunks_(kPairModel + kRows + " prompt=6 chunk=4 gen=2") {}
  ExactRun whole_, chunks_;
};

TEST_F(Chunked, HoldsByRounding) {
  const Pair pair = pair_of(whole_, exact_trace(whole_), chunks_, engine_trace(chunks_), true);
  EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
  EXPECT_GT(pair.count(Likeness::rounding), 60);
}

TEST_F(Chunked, HoldsByBitsOfOneDefinedOrder) {
  const Dump a = exact_trace(whole_), b = exact_trace(chunks_);
  const Pair pair = pair_of(whole_, a, chunks_, b, true);
  EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
  EXPECT_EQ(pair.count(Likeness::rounding), 0);
  // Floats of one defined order: the last bit of one number counts.
  Dump in_a = engine_trace(whole_), in_b = in_a;
  StoredArray& gate = in_b.values.find("prefill.c0.layer1.gate")->second.whole;
  poke(gate, 5, static_cast<double>(std::nextafter(static_cast<float>(gate.at(5)), 9.0F)));
  EXPECT_EQ(pair_of(whole_, in_a, in_b, true).exit_code(), 0);
  in_a.attributes["defined_order"] = in_b.attributes["defined_order"] = "batch-invariant 1";
  const Pair held = pair_of(whole_, in_a, in_b, true);
  EXPECT_EQ(first_of(held), "prefill.c0.layer1.gate");
  EXPECT_EQ(pair_row(held, "prefill.c0.layer1.gate").likeness, Likeness::not_the_same);
  EXPECT_EQ(held.exit_code(), 1);
  in_b.attributes["defined_order"] = "another";
  EXPECT_EQ(pair_of(whole_, in_a, in_b, true).exit_code(), 0);
}

TEST_F(Chunked, NamesAStaleSlotAShiftedPositionAnotherToken) {
  struct Fault {
    const char* name;
    std::size_t element;
    double by;
  };
  for (const Fault& f : {Fault{"prefill.c1.layer1.k_cache", 8, 1.0},
                         {"prefill.c1.layer0.q_rot", 3, 1.0},
                         {"prefill.c0.embed", 16, 1.0}}) {
    Dump wrong = engine_trace(chunks_);
    shift(wrong, f.name, f.element, f.by);
    for (const bool turned : {false, true}) {
      const Dump right = exact_trace(whole_);
      const Pair pair = turned ? pair_of(chunks_, wrong, whole_, right, true)
                               : pair_of(whole_, right, chunks_, wrong, true);
      EXPECT_EQ(pair.exit_code(), 1);
      ASSERT_TRUE(pair.first) << f.name;
      const Row* const row = pair.wrong(!turned);
      ASSERT_NE(row, nullptr) << f.name;
      EXPECT_EQ(row->title, f.name);
      EXPECT_EQ(pair.wrong(turned), nullptr) << f.name;
    }
  }
}

TEST_F(Chunked, WithAnIdOfAnotherTokenSaysSo) {
  Dump wrong = engine_trace(chunks_);
  StoredArray& ids = wrong.values.find("prefill.c1.ids")->second.whole;
  poke(ids, 1, std::fmod(ids.at(1) + 1, 30));
  const Pair pair = pair_of(whole_, exact_trace(whole_), chunks_, wrong, true);
  EXPECT_EQ(pair.exit_code(), 1);
  EXPECT_EQ(pair.differences.back().of, "prompts");
}

TEST(Batch, OfOneIsARowOfTheBatch) {
  const ExactRun run(kPairModel + kRows + " prompt=4 gen=2");
  const Dump batch = exact_trace(run);
  Dump one = with_rows(engine_trace(run), {2});
  Pair pair = pair_of(run, batch, one, true);
  EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
  EXPECT_GT(pair.count(Likeness::rounding), 40);
  EXPECT_EQ(pair_of(run, one, batch, true).exit_code(), 0);
  // Another row's number: its tokens are not this one's.
  one.attributes["rows"] = "1";
  pair = pair_of(run, batch, one, true);
  EXPECT_EQ(pair.exit_code(), 1);
  EXPECT_EQ(pair.count(Likeness::rounding), 0) << open_rows(pair);
  one.attributes["rows"] = "7";
  EXPECT_EQ(pair_of(run, batch, one, true).exit_code(), 1);  // nothing is of both
}

TEST(Batch, InAnotherOrderIsTheSame) {
  const ExactRun run(kPairModel + kRows + " prompt=4 gen=2");
  Dump a = engine_trace(run), b = with_rows(a, {2, 0, 1});
  const Pair same = pair_of(run, a, b, true);
  EXPECT_EQ(same.count(Likeness::same), std::ssize(same.rows)) << open_rows(same);
  EXPECT_GE(std::ssize(same.rows), std::ssize(a.values));
  const Dump exact = exact_trace(run);
  EXPECT_EQ(pair_of(run, exact, b, true).exit_code(), 0);
  shift(b, "decode.1.layer0.v_cache", 3, 1.0);
  const Pair pair = pair_of(run, exact, b, true);
  EXPECT_EQ(first_of(pair), "decode.1.layer0.v_cache");
  EXPECT_EQ(pair.exit_code(), 1);
}

TEST(CacheHit, IsAMissFromThereOn) {
  const ExactRun miss(kPairModel + kRows + " prompt=6 gen=2"),
      hit(kPairModel + kRows + " prompt=6 chunk=4 gen=2");
  const Dump whole = engine_trace(miss);
  Dump rest = engine_trace(hit);
  for (auto at = rest.values.begin(); at != rest.values.end();)
    at = at->first.starts_with("prefill.c0.") ? rest.values.erase(at) : std::next(at);
  std::erase_if(rest.order,
                [](const std::string& name) { return name.starts_with("prefill.c0."); });
  for (const char* layer : {"layer0.", "layer1."})
    for (const char* cache : {"k_cache", "v_cache"}) {
      // The first four slots of the miss's.
      const StoredArray& all =
          whole.values.find("prefill.c0." + std::string(layer) + cache)->second.whole;
      Value value;
      value.attributes["meaning"] = "previous " + std::string(cache);
      std::vector<double> numbers;
      const std::size_t row = all.size() / 3, slot = row / 6;
      for (std::size_t b = 0; b < 3; ++b)
        for (std::size_t i = 0; i < 4 * slot; ++i) numbers.push_back(all.at(b * row + i));
      value.whole = stored({3, 4, 2, 4}, numbers);
      ExactRun::insert(rest, "prefill.c1." + std::string(layer) + "old_" + cache, value);
    }
  const Pair pair = pair_of(miss, whole, hit, rest, true);
  EXPECT_EQ(pair.exit_code(), 0) << open_rows(pair);
  Dump stale = rest;
  shift(stale, "prefill.c1.layer1.old_v_cache", 5, 1.0);
  EXPECT_EQ(pair_of(miss, whole, hit, stale, true).exit_code(), 1);
}

}  // namespace
}  // namespace shardproof::dump
