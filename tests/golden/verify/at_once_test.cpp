// Several threads under one case, and several cases at once that ask one memo.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "golden/cases/cases.h"
#include "golden/verify/verify.h"
#include "tests/engine/strategy_sample.h"
#include "weights/base/error.h"

namespace shardproof {
namespace {

const char* const kModel = " model=palm-tiny,layers=1,E=12,F=12,H=6,Q=4,V=18,K=";

TEST(ThreadsOverChips, LeaveEveryBitAsItIs) {
  OracleMemo memo;
  int turn = 0;
  // A strategy of each kind, by turns with one head of keys and many: all of them would take too
  // long under the thread sanitizer.
  for (const char* torus : {"1x2x3", "3x2x1"})
    for (const Strategy& strategy : sample_strategies()) {
      const std::string heads = ++turn % 2 == 0 ? "1" : "6";
      const std::string s = strategy.to_string();
      const bool prefill_only = !decodes(strategy);
      const Case c = parse_case("torus=" + std::string(torus) + kModel + heads + " prefill=" + s +
                                " decode=" + (prefill_only ? "ws2d:batch" : s) +
                                " block=" + (serial_only(strategy) ? "serial" : "parallel") +
                                (prefill_only ? " prompt=6 chunk=6" : " prompt=3 chunk=2") +
                                " act=bf16 batch=6 gen=2 seed=5" +
                                (turn % 3 == 0 ? " regime=f32 schedule=ring" : ""));
      VerifyOptions alone, several;
      several.threads = turn % 2 == 0 ? 2 : 7;
      const Judgement one = verify_case(c, memo, alone);
      const Judgement three = verify_case(c, memo, several);
      EXPECT_EQ(one.verdict, Verdict::equal) << print_case(c) << one.explanation();
      EXPECT_EQ(three.verdict, Verdict::equal) << print_case(c) << three.explanation();
      EXPECT_EQ(one.tensors, three.tensors) << print_case(c);
      EXPECT_EQ(one.elements, three.elements) << print_case(c);
    }
}

TEST(ThreadsOfTheOracle, LeaveEveryBitAsItIs) {
  // Products that are worth a thread, and rows that run alone.
  for (const char* rows : {"batch=24 prompt=8", "batch=6 prompt=8 lengths=5,8"}) {
    const Case c = parse_case(
        "torus=1x1x1 model=palm-tiny,layers=1,E=64,F=256,H=64,Q=4,V=96 gen=2 seed=5 act=bf16 " +
        std::string(rows));
    OracleMemo of_one, of_three;
    const RunPlan plan = make_plan(c);
    const auto one = of_one.get(plan), three = of_three.get(plan, nullptr, 3);
    ASSERT_EQ(one->answer.checkpoints.size(), three->answer.checkpoints.size());
    for (const auto& [id, value] : one->answer.checkpoints)
      EXPECT_EQ(value.data, three->answer.checkpoints.at(id).data) << id;
    const FieldSetting setting{.seed = 3};
    const auto field_one = of_one.of_field(plan, setting);
    const auto field_three = of_three.of_field(plan, setting, 3);
    for (const auto& [id, value] : field_one->answer.checkpoints)
      EXPECT_TRUE(value.data == field_three->answer.checkpoints.at(id).data) << id;
  }
}

TEST(CasesAtOnce, ShareOneMemo) {
  // Neighbours ask the memo the same question, and there are more questions than it keeps.
  std::vector<Case> list;
  for (int seed = 1; seed <= 20; ++seed)
    for (const char* torus : {"1x1x1", "2x1x1", "1x3x1"})
      list.push_back(parse_case("torus=" + std::string(torus) + kModel +
                                "6 batch=6 prompt=2 gen=1 seed=" + std::to_string(seed)));
  std::vector<Judgement> judgements(list.size());
  OracleMemo memo;
  Threads pool(4);
  pool.for_each(static_cast<std::int64_t>(list.size()), [&](std::int64_t i) {
    judgements[static_cast<std::size_t>(i)] =
        verify_case(list[static_cast<std::size_t>(i)], memo, {.at_once = 4});
  });
  for (std::size_t i = 0; i < list.size(); ++i)
    EXPECT_EQ(judgements[i].verdict, Verdict::equal)
        << print_case(list[i]) << judgements[i].explanation();
}

// Every thread keeps paths between layouts that it was asked for. What it keeps is no part of a
// plan: one that was changed leaves the next as it was.
TEST(PlansAtOnce, AreThoseOfOneThreadWhateverWasPlannedBefore) {
  constexpr std::int64_t kCases = 12, kTimes = 3;
  std::vector<RunPlan> plans(kCases * kTimes);
  Threads pool(4);
  pool.for_each(std::ssize(plans), [&](std::int64_t i) {
    const auto index = static_cast<std::uint64_t>(i % kCases);
    RunPlan changed = cases::draw_plan(11, index);
    for (Op& op : changed.prefill.layer.ops) op.axes = Axes(), op.args.clear();
    plans[static_cast<std::size_t>(i)] = cases::draw_plan(11, index);
  });
  for (std::int64_t i = 0; i < kCases; ++i) {
    const RunPlan alone = cases::draw_plan(11, static_cast<std::uint64_t>(i));
    for (std::int64_t time = 0; time < kTimes; ++time) {
      const RunPlan& plan = plans[static_cast<std::size_t>(time * kCases + i)];
      EXPECT_EQ(plan.source_case, alone.source_case);
      EXPECT_EQ(plan.prefill.layer, alone.prefill.layer) << print_case(alone.source_case);
      EXPECT_EQ(plan.decode.layer, alone.decode.layer) << print_case(alone.source_case);
      EXPECT_EQ(plan.decode.head, alone.decode.head) << print_case(alone.source_case);
      EXPECT_EQ(plan.hand_over, alone.hand_over) << print_case(alone.source_case);
    }
  }
}

TEST(CasesAtOnce, FailTogetherWhenTheOracleRefuses) {
  // Whoever waits for the oracle gets its error, not only who asked first.
  const Case c = parse_case(std::string("torus=1x1x1") + kModel + "6 batch=6 prompt=2 gen=1");
  Case other = c;
  other.prompt = 0;  // no case line can say that; the oracle itself refuses it
  OracleMemo memo;
  std::vector<int> refused(8, 0);
  Threads pool(4);
  pool.for_each(8, [&](std::int64_t i) {
    try {
      memo.get(other);
    } catch (const Error&) {
      refused[static_cast<std::size_t>(i)] = 1;
    }
  });
  EXPECT_EQ(refused, std::vector<int>(8, 1));
}

}  // namespace
}  // namespace shardproof
