// The judge of the f32 regime. Faults of arithmetic are planted in what it is shown: a value is
// recomputed from the chips' own operands by the faulty rule before the judge sees it.
#include "golden/verify/scalar_judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/numeric/detail/functions.h"
#include "golden/verify/verify.h"
#include "tests/golden/changed_plan.h"
#include "tests/golden/scalar/faulty.h"

namespace shardproof {
namespace {

using namespace faulty;

float fused(std::int64_t K, const Factors& a, const Factors& b) {
  float c = 0.0F;
  for (std::int64_t k = 0; k < K; ++k) c = std::fma(a(k), b(k), c);
  return c;
}
float rounded_before_adding(std::int64_t K, const Factors& a, const Factors& b) {
  float c = 0.0F;
  for (std::int64_t k = 0; k < K; ++k) {
    const float rounded = a(k) * b(k);
    c = c + rounded;
  }
  return c;
}
float fused_from_the_last(std::int64_t K, const Factors& a, const Factors& b) {
  float c = 0.0F;
  for (std::int64_t k = K; k-- > 0;) c = std::fma(a(k), b(k), c);
  return c;
}

/// The terms added in the order first, first+step, ...
float around(const std::vector<float>& terms, std::size_t first, std::size_t step) {
  float total = terms[first % terms.size()];
  for (std::size_t i = 1; i < terms.size(); ++i) total += terms[(first + i * step) % terms.size()];
  return total;
}

float ring(const std::vector<float>& t, std::size_t c) { return around(t, c + 1, 1); }
float ring_from_the_owner(const std::vector<float>& t, std::size_t c) { return around(t, c, 1); }
float ring_the_other_way(const std::vector<float>& t, std::size_t c) {
  return around(t, c + t.size() - 1, t.size() - 1);
}
float group_reversed(const std::vector<float>& t, std::size_t) {
  return around(t, t.size() - 1, t.size() - 1);
}
float odd_one_folded_early(const std::vector<float>& t, std::size_t) {
  return (t[0] + t[1]) + ((t[2] + t[3]) + t[4]);  // five members
}
float tree_of_five(const std::vector<float>& t, std::size_t) {
  return ((t[0] + t[1]) + (t[2] + t[3])) + t[4];
}

TEST(ScalarJudge, FindsEverythingEqualUnderEverySchedule) {
  const Fault none = [](const Op&, const Args&, Results&) { return false; };
  for (Schedule schedule : {Schedule::group, Schedule::ring, Schedule::tree, Schedule::biring}) {
    const Judgement j = judged(f32_case(schedule), none);
    EXPECT_EQ(j.verdict, Verdict::equal) << j.explanation();
    ASSERT_TRUE(j.drift.has_value());
    EXPECT_GT(j.drift->worst().second, 0.0);
  }
}

TEST(ScalarJudge, NamesTheLineOfAProgramFile) {
  Case c = parse_case(
      "torus=1x2x3 model=palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=24 batch=6 "
      "prompt=2 gen=1 regime=f32");
  const Program layer = parse_program(
      "layer", print_program(partitioned(c, Strategy::parse("ws2d:batch"), Phase::prefill).layer),
      "p.txt");
  c.prefill = c.decode = Strategy(layer);
  const Judgement j = judged(c, [](const Op& op, const Args&, Results& results) {
    if (op.kind != OpKind::swiglu) return false;
    results.at(0).f32_of(1)[0] += 1.0F;
    return true;
  });
  ASSERT_TRUE(j.difference());
  EXPECT_TRUE(j.difference()->where.starts_with("p.txt line ")) << j.difference()->where;
}

TEST(ScalarJudge, TheRecomputedRightValuesAreEqualToo) {
  EXPECT_EQ(judged(f32_case(Schedule::group), product(fused)).verdict, Verdict::equal);
  for (OpKind kind : {OpKind::reduce_scatter, OpKind::all_reduce})
    EXPECT_EQ(judged(f32_case(Schedule::ring), reduction(ring, kind)).verdict, Verdict::equal);
  EXPECT_EQ(judged(f32_case(Schedule::tree),
                   [](const Op& op, const Args& args, auto& results) {
                     return args[0].torus().size(op.axes) == 5 &&
                            reduction(tree_of_five, OpKind::all_reduce)(op, args, results);
                   })
                .verdict,
            Verdict::equal);
}

TEST(ScalarJudge, CatchesProductsRoundedBeforeAdding) {
  expect_caught(Schedule::group, product(rounded_before_adding));
}

TEST(ScalarJudge, CatchesDescendingK) {
  expect_caught(Schedule::group, product(fused_from_the_last));
}

TEST(ScalarJudge, CatchesEveryWrongOrderOfAReduction) {
  for (OpKind kind : {OpKind::reduce_scatter, OpKind::all_reduce}) {
    expect_caught(Schedule::ring, reduction(ring_from_the_owner, kind));
    expect_caught(Schedule::ring, reduction(ring_the_other_way, kind, 3));
    expect_caught(Schedule::group, reduction(group_reversed, kind, 3));
    expect_caught(Schedule::group, reduction(ring, kind, 3));
    expect_caught(Schedule::tree, [kind](const Op& op, const Args& args, auto& results) {
      return args[0].torus().size(op.axes) == 5 &&
             reduction(odd_one_folded_early, kind)(op, args, results);
    });
  }
}

TEST(ScalarJudge, CatchesADenominatorOverMaskedKeys) {
  expect_caught(Schedule::group, [](const Op& op, const Args& args, auto& results) {
    if (op.kind != OpKind::attend || !results.contains(3)) return false;
    const Shape q = args[0].local();
    const Shape k = args[1].local();
    const auto chips = numbers_of(results.at(3));
    for (std::size_t c = 0; c < chips.size(); ++c)
      for (std::size_t i = 0; i < chips[c].size(); ++i) {
        const std::size_t row = i / static_cast<std::size_t>(q[2] * q[1]);  // one kv head
        const std::int32_t pos = args[3].i32()[c][i / static_cast<std::size_t>(q[2])];
        float top = -INFINITY;
        std::vector<float> scores;
        for (std::int64_t m = 0; m < k[1]; ++m) {
          float s = 0.0F;
          for (std::size_t j = 0; j < 4; ++j)
            s = std::fma(
                args[0].f32()[c][i * 4 + j],
                args[1]
                    .f32()[c][(row * static_cast<std::size_t>(k[1]) + static_cast<std::size_t>(m)) *
                                  4 +
                              j],
                s);
          scores.push_back(static_cast<float>(static_cast<double>(s) * 0.5));
          if (m <= pos) top = std::max(top, scores.back());
        }
        float Z = 0.0F;
        for (const float s : scores) Z = std::fma(exp32(s - top), 1.0F, Z);
        chips[c][i] = Z;
      }
    return true;
  });
}

TEST(ScalarJudge, AValueThatIsNeverShownIsNotJudged) {
  JudgedRun<ScalarJudge> run(f32_case(Schedule::group));
  class Silent : public Observer {
   public:
    explicit Silent(Observer& judge) : judge_(judge) {}
    void observe(const Scope& scope, const Program& program, const Op* op,
                 const ValueDecl& declared, const Sharded& value) override {
      if (declared.role.to_string() != "hidden")
        judge_.observe(scope, program, op, declared, value);
    }

   private:
    Observer& judge_;
  } silent(run.judge);
  run.run(silent);
  const Judgement j = run.judge.finish();
  EXPECT_EQ(j.verdict, Verdict::not_judged);
  EXPECT_NE(j.reason().find("no value of the run was compared with"), std::string::npos)
      << j.reason();
}

/// The scalar model follows the program, so a wrong program must fall in the exact regime first.
TEST(VerifyF32, AWrongProgramIsCaughtInTheExactRegime) {
  const Case c = f32_case(Schedule::ring);
  OracleMemo memo;
  EXPECT_EQ(verify_case(c, memo).verdict, Verdict::equal);
  const auto swapped = [](RunPlan& plan) {
    for (Op& op : plan.decode.layer.ops)
      if (op.kind == OpKind::swiglu) std::swap(op.args[0], op.args[1]);
  };
  const Judgement j = judge_changed(c, swapped, memo, Typing::unchecked);
  EXPECT_EQ(j.verdict, Verdict::different);
  EXPECT_FALSE(j.drift.has_value());
}

}  // namespace
}  // namespace shardproof
