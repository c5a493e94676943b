#include "golden/judge/judge.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/golden/changed_plan.h"
#include "tests/golden/judged_run.h"
#include "tests/golden/recorded_run.h"
#include "tests/golden/spoiled.h"

namespace shardproof {
namespace {

/// Over batch on 2x1x3, with a step of decode.
constexpr const char* kLine =
    "torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:batch gen=2 seed=5";

TEST(Judge, SeesAWrongSumWhoseOriginsAreRight) {
  // Of a few elements the judge looks at the origins, too; they must not excuse the value.
  const RecordedRun run(kLine);
  std::set<std::string> seen;
  for (const Shown& shown : run.shown) {
    if (!shown.value.holds_partial()) continue;
    seen.insert(shown.step());
    for (int chip = 0; chip < 6; ++chip)
      for (std::size_t at = 0; at < shown.value.partial().values[0].size(); ++at) {
        Sharded changed = shown.value;
        change_element(changed, chip, at);
        Findings findings;
        Judge judge(run.known->answer, run.known->weights, findings);
        shown.to(judge, changed);
        ASSERT_EQ(findings.all().size(), 1U) << shown.step() << " " << chip << " " << at;
        EXPECT_EQ(findings.all()[0].step, shown.step());
        ASSERT_TRUE(findings.all()[0].reach);
        EXPECT_EQ(findings.all()[0].reach->elements, 1);
      }
  }
  for (const char* step : {"prefill.c0.layer0.ss", "prefill.c0.layer0.h", "decode.1.layer0.y"})
    EXPECT_TRUE(seen.contains(step)) << step;
}

TEST(Judge, SaysWhereADifferenceIs) {
  const RecordedRun run(kLine);
  Findings findings;
  Judge judge(run.known->answer, run.known->weights, findings);
  for (const Shown& shown : run.shown) {
    Sharded value = shown.value;
    if (shown.step() == "decode.1.layer0.hr") change_element(value, 4, size_of(value, 4) - 1);
    if (!findings.ended()) shown.to(judge, value);
  }
  const Judgement j = judge.finish();
  ASSERT_TRUE(j.difference());
  EXPECT_EQ(j.difference()->chip, "(1,0,1)");
  EXPECT_EQ(j.difference()->pass, "decode.1");
  EXPECT_EQ(j.difference()->checkpoint, "decode.1.layer0.gate");
  EXPECT_EQ(j.difference()->op, "reduce_scatter(h, F, x)");
  // F_zyx on 2x1x3: chip (1,0,1) holds block 1·2+1 = 3 of 6, two wide; its last element is 7.
  EXPECT_EQ(j.difference()->index, (Shape{5, 0, 7}));
}

/// Declares `value` with the axes of every dim in the opposite order; of how many dims that is a
/// lie.
int declare_reversed(Program& program, const std::string& value) {
  int lies = 0;
  for (Op& op : program.ops)
    for (ValueDecl& result : op.results) {
      if (result.name != value) continue;
      for (std::size_t d = 0; d < result.layout.rank(); ++d) {
        const Axes axes = result.layout.dims()[d].axes;
        Axes reversed;
        for (int i = axes.size(); i-- > 0;) reversed = reversed.with(axes.begin()[i]);
        if (axes == reversed) continue;
        result.layout = result.layout.with_axes(d, reversed);
        ++lies;
      }
    }
  return lies;
}

TEST(Judge, GoesByTheDeclaredLayout) {
  // A local op leaves its operand's layout on the value; what the program says of it is judged.
  OracleMemo memo;
  const Case c = parse_case(
      "torus=2x3x2 model=palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=24 prefill=ws2d:batch seed=5");
  int lies = 0;
  for (const char* value : {"a", "qp", "kp", "kc", "s", "o", "xn", "out"}) {
    const int before = lies;
    const auto lie = [&](RunPlan& plan) { lies += declare_reversed(plan.prefill.layer, value); };
    const Judgement j = judge_changed(c, lie, memo, Typing::unchecked);
    if (lies == before) continue;  // xn : BLE_x has one axis, its reverse is no lie
    EXPECT_EQ(j.verdict, Verdict::different) << value;
    ASSERT_TRUE(j.difference()) << value;
    EXPECT_EQ(j.difference()->step, std::string("prefill.c0.layer0.") + value);
  }
  EXPECT_EQ(lies, 7);
}

/// Passes on what a run shows, with the origins of one moved partial all pointing at element 0.
class OriginSpoiler : public Observer {
 public:
  explicit OriginSpoiler(Judge& judge) : judge_(judge) {}
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    if (declared.name != "qt" || !value.holds_partial())
      return judge_.observe(scope, program, op, declared, value);
    Partial changed = value.partial();
    for (auto& of_chip : changed.origins)
      for (Origin& origin : of_chip) origin.index = 0;
    judge_.observe(scope, program, op, declared,
                   {value.torus(), value.layout(), value.shape(), std::move(changed)});
  }

 private:
  Judge& judge_;
};

TEST(Judge, SeesWrongOriginsOfAPartial) {
  JudgedRun<Judge> run(parse_case(
      "torus=2x3x2 model=palm-tiny,layers=1,E=24,F=24,H=12,K=6,Q=2,V=24 prefill=ws2d:pre-zy "
      "seed=5"));
  OriginSpoiler spoiler(run.judge);
  run.run(spoiler);
  EXPECT_TRUE(run.findings.ended());
  const Judgement j = run.judge.finish();
  ASSERT_TRUE(j.difference());
  EXPECT_EQ(j.difference()->step, "prefill.c0.layer0.qt");
}

TEST(Judge, DoesNotJudgeARunThatShowedNothing) {
  const JudgedRun<Judge> run(
      parse_case("model=palm-tiny,layers=1,E=8,F=8,H=8,Q=2,V=8 prefill=ws1d"));
  const Judgement j = run.judge.finish();
  EXPECT_EQ(j.verdict, Verdict::not_judged);
  EXPECT_NE(j.explanation(), "");
}

}  // namespace
}  // namespace shardproof
