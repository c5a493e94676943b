#include "engine/cost/plan/split.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "engine/collectives/crossing.h"
#include "tests/engine/cost/cases.h"
#include "tests/engine/random_layout.h"
#include "weights/base/error.h"

namespace shardproof::cost {
namespace {

/// Returns the keys and values of a model that lie alike.
double elements_of(std::int64_t layers, std::int64_t K, std::int64_t Q) {
  return 2.0 * static_cast<double>(layers * K * Q);
}

// ---- Bytes ----

/// OPT-66B, 64 layers of 72 heads of 128, keeps 512 tokens in 1.13 GiB of bf16.
TEST(SplitCost, CachesOfAPublishedModel) {
  const Torus one(1, 1, 1);
  const Layout whole = Layout::parse("BMKQ");
  const double bytes =
      crossing_of(elements_of(64, 72, 128), 1, 512, 2.0, one, whole, one, whole).bytes;
  EXPECT_EQ(bytes, 2.0 * 64 * 72 * 128 * 512 * 2);
  EXPECT_NEAR(bytes / (1 << 30), 1.13, 0.005);
}

TEST(SplitCost, ReplicasAreSentOnceEach) {
  const double elements = elements_of(3, 1, 8);
  const Torus two(2, 1, 1), six(2, 3, 1);
  const Layout whole = Layout::parse("BMKQ"), rows = Layout::parse("B_yMKQ");
  const double once = elements * 6 * 4 * 2;
  EXPECT_EQ(crossing_of(elements, 6, 4, 2.0, two, whole, six, whole).bytes, 6 * once);
  const Crossing cut = crossing_of(elements, 6, 4, 2.0, two, whole, six, rows);
  EXPECT_EQ(cut.bytes, 2 * once);
  EXPECT_EQ(cut.senders, 2);
  EXPECT_EQ(cut.receivers, 6);
  // One row is on the two chips that have its block.
  const Crossing one = crossing_of(elements, 1, 4, 2.0, two, whole, six, rows);
  EXPECT_EQ(one.bytes, 2 * once / 6);
  EXPECT_EQ(one.receivers, 2);
  EXPECT_EQ(transfer_seconds(one, 8.0), once / 6 / 8.0);
}

/// What the engine's crossing of one layer's keys pulls and sends.
RC_GTEST_PROP(SplitCost, BytesAreThoseThatTheEngineMoves, ()) {
  const Torus source = draw_torus(), target = draw_torus();
  const Layout from = draw_layout("BMKQ"), to = draw_layout("BMKQ");
  Shape shape;
  for (std::size_t d = 0; d < from.rank(); ++d)
    shape.push_back(std::lcm(source.size(from.dims()[d].axes), target.size(to.dims()[d].axes)) *
                    draw_int(1, 2));
  const Moves moves = crossing_moves(source, from, target, to, shape);
  const Crossing crossing = crossing_of(elements_of(1, shape[2], shape[3]), shape[0], shape[1], 1.0,
                                        source, from, target, to);
  const auto of_keys = crossing.bytes / 2.0;
  RC_ASSERT(of_keys == static_cast<double>(pulled(moves)));
  RC_ASSERT(crossing.receivers == target.chips());
  RC_ASSERT(crossing.senders == source.chips());
  std::int64_t busiest = 0;
  for (int chip = 0; chip < source.chips(); ++chip) busiest = std::max(busiest, sent(moves, chip));
  RC_ASSERT(static_cast<double>(busiest) >= of_keys / crossing.senders);
}

// ---- Seconds ----

/// Parts go through two stages one after the other, each as soon as it may.
double pipelined(double prefill, double transfer, std::int64_t parts) {
  double computed = 0.0, sent = 0.0;
  for (std::int64_t i = 0; i < parts; ++i) {
    computed += prefill / static_cast<double>(parts);
    sent = std::max(sent, computed) + transfer / static_cast<double>(parts);
  }
  return sent;
}

RC_GTEST_PROP(SplitCost, OverlapIsThatOfTwoStages, ()) {
  const std::int64_t parts = draw_int(1, 40);
  // Multiples of the number of parts, so that no division rounds.
  const double prefill = static_cast<double>(parts * draw_int(1, 1000));
  const double transfer = static_cast<double>(parts * draw_int(0, 1000));
  const double seconds = overlapped_seconds(prefill, transfer, parts);
  RC_ASSERT(seconds == pipelined(prefill, transfer, parts));
  RC_ASSERT(seconds <= serial_seconds(prefill, transfer));
  RC_ASSERT(overlapped_seconds(prefill, transfer, 1) == serial_seconds(prefill, transfer));
}

TEST(SplitCost, TheQueueAsItsFormulasAreWritten) {
  const double D = 0.5, R = 1.25, K = 1.5;
  EXPECT_DOUBLE_EQ(average_ttft(D, R), D + R * D * D / (2 * (1 - R * D)));
  EXPECT_DOUBLE_EQ(average_ttft_of_stages(D, R, 2), D + R * D * D / (4 * (2 - R * D)));
  EXPECT_DOUBLE_EQ(average_ttft_sped_up(D, R, K), D / K + R * D * D / (2 * K * (K - R * D)));
  EXPECT_EQ(average_ttft(D, 0.0), D);
  EXPECT_DOUBLE_EQ(average_ttft_sped_up(D, R, K), average_ttft(D / K, R));
  EXPECT_EQ(message_of([] { average_ttft(0.5, 2.0); }),
            "split_c1: rate=2 requests/s, of which each takes 0.5 s: the queue grows without end; "
            "the nearest feasible: below 2 requests/s");
  EXPECT_EQ(label_of([] { average_ttft_of_stages(0.5, 4.0, 2); }), "split_c1");
  EXPECT_EQ(label_of([] { average_ttft_sped_up(0.5, 3.0, 1.5); }), "split_c1");
  EXPECT_EQ(label_of([] { average_ttft(0.5, -1.0); }), "split_c3");
  EXPECT_EQ(label_of([] { average_ttft(0.0, 1.0); }), "split_c3");
}

RC_GTEST_PROP(SplitCost, TheHighestRateIsWhereTheGoalIsJustMet, ()) {
  const double D = draw_int(1, 100) / 8.0, goal = D * (1.0 + draw_int(1, 100) / 16.0);
  const double rate = highest_rate(D, goal);
  RC_ASSERT(std::abs(average_ttft(D, rate) / goal - 1.0) <
            1000 * std::numeric_limits<double>::epsilon());
  RC_ASSERT(highest_rate(D, D) == 0.0);
}

// ---- Two slices ----

/// Two layers, one byte an element: 2·2·1·4·16 = 256 bytes, 1 s from chip to chip.
constexpr std::int64_t kLayers = 2;
const double kElements = elements_of(kLayers, 1, 4);

/// Keys and values that lie alike.
std::vector<CacheOfLayers> caches(const Layout& layout) {
  return {{layout, kElements / 2}, {layout, kElements / 2}};
}
std::vector<CacheOfLayers> caches(const char* layout) { return caches(Layout::parse(layout)); }

/// Twice the chips take half the time.
std::vector<PrefillSlice> prefills() {
  std::vector<PrefillSlice> all;
  for (const int n : {1, 2, 4, 8}) all.push_back({Torus(n, 1, 1), caches("BMKQ"), 8.0 / n});
  return all;
}
std::vector<DecodeSlice> decodes() {
  std::vector<DecodeSlice> all;
  for (const int n : {1, 2, 4, 8}) all.push_back({Torus(1, n, 1), caches("B_yMKQ"), 0.8 / n, 8});
  return all;
}

const SplitGoal kGoal{
    .ttft = 4.0, .tpot = 0.5, .context = 16, .steps = 8, .cache_bytes = 1.0, .bandwidth = 256.0};

TEST(Split, TakesTheFewestChips) {
  const Split split = plan_split(kLayers, prefills(), decodes(), kGoal);
  EXPECT_EQ(split.prefill.torus, Torus(2, 1, 1));
  // 0.4 s a step, and of the second on its way one half of it is not overlapped.
  EXPECT_EQ(split.decode.torus, Torus(1, 2, 1));
  EXPECT_EQ(split.chips(), 4);
  EXPECT_EQ(split.ttft, 4.0);
  EXPECT_EQ(split.transfer, 1.0);
  EXPECT_EQ(split.exposed, 0.5);
  EXPECT_DOUBLE_EQ(split.tpot, 0.4 + 0.5 / 8);
}

/// A harder goal of one phase is met by a larger slice of this phase, and by no other.
TEST(Split, EachGoalDecidesItsOwnSlice) {
  SplitGoal sooner = kGoal;
  sooner.ttft = 2.0;
  const Split first = plan_split(kLayers, prefills(), decodes(), sooner);
  EXPECT_EQ(first.prefill.torus, Torus(4, 1, 1));
  EXPECT_EQ(first.decode.torus, Torus(1, 2, 1));
  SplitGoal faster = kGoal;
  faster.tpot = 0.4;  // as long as a step of two chips, but for the transfer's share
  const Split further = plan_split(kLayers, prefills(), decodes(), faster);
  EXPECT_EQ(further.prefill.torus, Torus(2, 1, 1));
  EXPECT_EQ(further.decode.torus, Torus(1, 4, 1));
}

TEST(Split, OfAsManyChipsTakesTheSoonerFirstTokenThenTheFasterStep) {
  const std::vector<CacheOfLayers> whole = caches("BMKQ");
  // The faster prefill hides less of the second that the caches take: 0.75 s are left, not 0.5 s.
  const std::vector<PrefillSlice> alike{{Torus(2, 1, 1), whole, 2.0}, {Torus(1, 2, 1), whole, 0.5}};
  const std::vector<DecodeSlice> steps{{Torus(1, 1, 1), whole, 0.4, 8}};
  EXPECT_EQ(plan_split(kLayers, alike, steps, kGoal).ttft, 0.5);
  const std::vector<DecodeSlice> slow_first{{Torus(2, 1, 1), whole, 0.4, 8},
                                            {Torus(1, 2, 1), whole, 0.3, 8}};
  EXPECT_EQ(plan_split(kLayers, prefills(), slow_first, kGoal).decode.seconds, 0.3);
}

TEST(Split, ARateNeedsMoreChips) {
  SplitGoal goal = kGoal;
  goal.rate = 0.2;
  const Split split = plan_split(kLayers, prefills(), decodes(), goal);
  EXPECT_EQ(split.prefill.torus, Torus(4, 1, 1));
  EXPECT_DOUBLE_EQ(split.ttft, average_ttft(2.0, 0.2));
  EXPECT_DOUBLE_EQ(split.highest_rate, 0.5);
}

/// Prefills of a tenth of a second are too many for a transfer of one.
TEST(Split, TheTransferKeepsUpToo) {
  const std::vector<PrefillSlice> fast{{Torus(1, 1, 1), caches("BMKQ"), 0.1}};
  SplitGoal goal = kGoal;
  goal.rate = 0.75;
  EXPECT_EQ(plan_split(kLayers, fast, decodes(), goal).highest_rate, 1.0);
  goal.rate = 1.5;
  EXPECT_EQ(label_of([&] { plan_split(kLayers, fast, decodes(), goal); }), "split_c2");
}

/// One row at a time, taken for the eight steps of a request: 1/(8·0.2) a second of four chips.
TEST(Split, TheDecodeKeepsUpToo) {
  std::vector<DecodeSlice> one_row = decodes();
  for (DecodeSlice& slice : one_row) slice.rows = 1;
  SplitGoal goal = kGoal;
  goal.rate = 0.5;
  const std::vector<PrefillSlice> fast{{Torus(1, 1, 1), caches("BMKQ"), 0.1}};
  const Split split = plan_split(kLayers, fast, one_row, goal);
  EXPECT_EQ(split.decode.torus, Torus(1, 4, 1));
  EXPECT_DOUBLE_EQ(split.highest_rate, 0.625);
}

/// What kGoal becomes where one of its numbers is another.
Split changed(const CaseLine& line) {
  SplitGoal goal = kGoal;
  const std::map<std::string, double*> numbers{{"ttft", &goal.ttft},
                                               {"tpot", &goal.tpot},
                                               {"rate", &goal.rate},
                                               {"bandwidth", &goal.bandwidth},
                                               {"cache_bytes", &goal.cache_bytes}};
  if (const auto at = numbers.find(line.text(0)); at != numbers.end())
    *at->second = line.number(1);
  else
    (line.text(0) == "context" ? goal.context : goal.steps) = line.whole(1);
  return plan_split(kLayers, prefills(), decodes(), goal);
}

TEST(Split, SaysTheNearestFeasible) { expect_refusals("plan/goals.txt", "infeasible", changed); }

TEST(Split, RefusesWhatIsNoNumber) {
  expect_refusals("plan/goals.txt", "number", changed);
  EXPECT_EQ(label_of([] { plan_split(kLayers, {}, decodes(), kGoal); }), "split_c3");
  EXPECT_EQ(label_of([] { plan_split(kLayers, prefills(), {}, kGoal); }), "split_c3");
  EXPECT_EQ(label_of([] { overlapped_seconds(1.0, 1.0, 0); }), "split_c3");
  const Torus one(1, 1, 1);
  const Layout whole = Layout::parse("BMKQ");
  EXPECT_EQ(label_of([&] { crossing_of(0.0, 1, 1, 1.0, one, whole, one, whole); }), "split_c3");
}

/// Caches in two layouts cross one after the other, each with the chips of its own.
TEST(Split, CachesInTwoLayoutsCrossInTurn) {
  const Layout whole = Layout::parse("BMT"), cut = Layout::parse("B_yMKQ");
  const std::vector<PrefillSlice> prefill{{Torus(1, 1, 1), {{whole, 8}, {whole, 4}}, 4.0}};
  const std::vector<DecodeSlice> decode{{Torus(1, 2, 1), {{whole, 8}, {cut, 4}}, 0.1, 8}};
  SplitGoal goal = kGoal;
  goal.ttft = goal.tpot = 100.0;
  const Split split = plan_split(kLayers, prefill, decode, goal);
  EXPECT_EQ(split.cache_bytes, (2 * 8 + 4) * 16);
  // One chip sends both copies of the first; the row's part of the second goes to one chip.
  EXPECT_EQ(split.transfer, (2 * 8 + 4) * 16 / 256.0);
}

TEST(Split, RefusesSlicesOfOtherModels) {
  std::vector<PrefillSlice> first = prefills();
  for (PrefillSlice& slice : first) {
    const std::vector<CacheOfLayers> both = slice.caches;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}}) {
      slice.caches.resize(count);
      EXPECT_EQ(label_of([&] { plan_split(kLayers, first, decodes(), kGoal); }), "split_c3");
    }
    slice.caches = both;
  }
  std::vector<DecodeSlice> second = decodes();
  for (DecodeSlice& slice : second) {
    slice.caches.push_back(slice.caches[0]);
    EXPECT_EQ(message_of([&] { plan_split(kLayers, prefills(), second, kGoal); }),
              "split_c3: a slice of 2 caches and one of 3: each has those of the model, and at "
              "least 1");
    slice.caches.pop_back();
  }
}

/// Against all pairs, in whatever order they are given.
RC_GTEST_PROP(Split, NoPairThatMeetsTheGoalHasFewerChips, ()) {
  std::vector<PrefillSlice> first;
  std::vector<DecodeSlice> second;
  for (int i = draw_int(1, 6); i > 0; --i)
    first.push_back({draw_torus(), caches(draw_layout("BMKQ")), draw_int(1, 40) / 8.0});
  for (int i = draw_int(1, 6); i > 0; --i)
    second.push_back(
        {draw_torus(), caches(draw_layout("BMKQ")), draw_int(1, 40) / 64.0, draw_int(1, 9)});
  SplitGoal goal = kGoal;
  goal.ttft = draw_int(1, 50) / 8.0, goal.tpot = draw_int(1, 50) / 64.0;
  goal.rate = draw_int(0, 8) / *rc::gen::element(4.0, 16.0);
  int least = std::numeric_limits<int>::max();
  for (const PrefillSlice& a : first)
    for (const DecodeSlice& b : second) {
      const double transfer =
          transfer_seconds(crossing_of(kElements, 1, 16, 1.0, a.torus, a.caches[0].layout, b.torus,
                                       b.caches[0].layout),
                           goal.bandwidth);
      const double exposed = overlapped_seconds(a.seconds, transfer, 2) - a.seconds;
      const bool keeps_up = goal.rate * a.seconds < 1.0 && goal.rate * transfer < 1.0 &&
                            goal.rate * 8.0 * b.seconds < static_cast<double>(b.rows);
      if (keeps_up && average_ttft(a.seconds, goal.rate) <= goal.ttft &&
          b.seconds + exposed / 8.0 <= goal.tpot)
        least = std::min(least, a.torus.chips() + b.torus.chips());
    }
  const bool feasible = least != std::numeric_limits<int>::max();
  RC_CLASSIFY(feasible, "feasible");
  if (!feasible) {
    RC_ASSERT(label_of([&] { plan_split(kLayers, first, second, goal); }) == "split_c2");
    return;
  }
  const Split split = plan_split(kLayers, first, second, goal);
  RC_ASSERT(split.chips() == least);
  RC_ASSERT(split.ttft <= goal.ttft);
  RC_ASSERT(split.tpot <= goal.tpot);
  RC_ASSERT(split.highest_rate > goal.rate);
}

}  // namespace
}  // namespace shardproof::cost
