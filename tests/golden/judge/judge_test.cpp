#include "golden/judge/judge.h"

#include <gtest/gtest.h>

#include <bit>
#include <optional>

#include "engine/run/inference.h"
#include "golden/verify/verify.h"

namespace shardproof {
namespace {

/// Passes what a run shows on to the judge, with one element of one chip of one value changed: the
/// last, or element `at`.
class Corrupter : public Observer {
 public:
  Corrupter(Judge& judge, std::string step, int chip, std::optional<std::size_t> at)
      : judge_(judge), step_(std::move(step)), chip_(chip), at_(at) {}

  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    if (scope.step(program, declared.name) != step_) {
      judge_.observe(scope, program, op, declared, value);
      return;
    }
    Sharded changed = value;
    if (value.stores_int32()) {
      ++changed.i32_of(chip_).back();
    } else if (!value.holds_partial()) {
      float& last = changed.f32_of(chip_).back();
      last = std::bit_cast<float>(std::bit_cast<std::uint32_t>(last) ^ 1U);
    } else {
      const auto values = changed.partial_values_of(chip_);
      size = values.size();
      values[at_.value_or(values.size() - 1)] += 1.0;
    }
    judge_.observe(scope, program, op, declared, changed);
  }

  std::size_t size = 0;  // of the partial shard

 private:
  Judge& judge_;
  std::string step_;
  int chip_;
  std::optional<std::size_t> at_;
};

Judgement judge_corrupted(const std::string& step, int chip,
                          std::optional<std::size_t> at = std::nullopt,
                          std::size_t* size = nullptr) {
  const Case c = parse_case(
      "torus=2x1x3 model=palm-tiny,layers=1,E=12,F=12,H=6,Q=2,V=12 prefill=ws2d:batch gen=2 "
      "seed=5");
  OracleMemo memo;
  const auto known = memo.get(c);
  Findings findings;
  Judge judge(known->answer, known->weights, findings);
  Corrupter corrupter(judge, step, chip, at);
  Threads threads(1);
  run_inference(make_plan(c), known->weights, known->prompt, threads, &corrupter,
                Hazards::hostile(), {}, &findings);
  if (size != nullptr) *size = corrupter.size;
  return judge.finish();
}

TEST(Judge, SeesAWrongSumWhoseOriginsAreRight) {
  // Of a few elements the judge looks at the origins, too; they must not excuse the value.
  for (const char* step : {"prefill.c0.layer0.ss", "prefill.c0.layer0.h", "decode.1.layer0.y"})
    for (int chip = 0; chip < 6; ++chip) {
      std::size_t size = 1;
      for (std::size_t at = 0; at < size; ++at) {
        const Judgement j = judge_corrupted(step, chip, at, &size);
        ASSERT_GT(size, 0U) << step << " holds no partial sums";
        ASSERT_EQ(j.verdict, Verdict::different) << step << " " << chip << " " << at;
        EXPECT_EQ(j.difference()->step, step);
        ASSERT_TRUE(j.difference()->reach);
        EXPECT_EQ(j.difference()->reach->elements, 1);
      }
    }
}

TEST(Judge, SeesOneFlippedBitOnOneChipOfAnyValue) {
  // Replicated, sharded, partial, cached, weights, positions, candidates, tokens; a middle chip.
  for (const char* step : {"prefill.c0.embed.e",    "prefill.c0.embed.x",   "prefill.c0.layer0.wq",
                           "prefill.c0.layer0.pos", "prefill.c0.layer0.xg", "prefill.c0.layer0.ss",
                           "prefill.c0.layer0.sa",  "prefill.c0.layer0.gs", "prefill.c0.layer0.qt",
                           "prefill.c0.layer0.k",   "decode.1.layer0.kc",   "decode.1.layer0.vc",
                           "decode.1.layer0.k_old", "decode.1.layer0.s",    "decode.1.layer0.d",
                           "decode.1.layer0.ag",    "decode.1.layer0.y",    "decode.1.layer0.out",
                           "decode.1.head.xn",      "decode.1.sample.cv",   "decode.1.sample.gi",
                           "decode.1.sample.token"}) {
    const Judgement j = judge_corrupted(step, 4);
    EXPECT_EQ(j.verdict, Verdict::different) << step;
    ASSERT_TRUE(j.difference()) << step;
    EXPECT_EQ(j.difference()->step, step);
  }
  const Judgement j = judge_corrupted("decode.1.layer0.hr", 4);
  ASSERT_TRUE(j.difference());
  EXPECT_EQ(j.difference()->chip, "(1,0,1)");
  EXPECT_EQ(j.difference()->pass, "decode.1");
  EXPECT_EQ(j.difference()->checkpoint, "decode.1.layer0.gate");
  EXPECT_EQ(j.difference()->op, "reduce_scatter(h, F, x)");
  // F_zyx on 2x1x3: chip (1,0,1) holds block 1·2+1 = 3 of 6, two wide; its last element is 7.
  EXPECT_EQ(j.difference()->index, (Shape{5, 0, 7}));
}

TEST(Judge, WithoutTheFaultFindsNothing) {
  EXPECT_EQ(judge_corrupted("no such step", 0).verdict, Verdict::equal);
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
    VerifyOptions options;
    options.check_types = false;
    options.mutate = [&](RunPlan& plan) { lies += declare_reversed(plan.prefill.layer, value); };
    const int before = lies;
    const Judgement j = verify_case(c, memo, options);
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
  const Case c = parse_case(
      "torus=2x3x2 model=palm-tiny,layers=1,E=24,F=24,H=12,K=6,Q=2,V=24 prefill=ws2d:pre-zy "
      "seed=5");
  OracleMemo memo;
  const auto known = memo.get(c);
  Findings findings;
  Judge judge(known->answer, known->weights, findings);
  OriginSpoiler spoiler(judge);
  Threads threads(1);
  run_inference(make_plan(c), known->weights, known->prompt, threads, &spoiler, Hazards::hostile(),
                {}, &findings);
  EXPECT_TRUE(findings.ended());
  const Judgement j = judge.finish();
  ASSERT_TRUE(j.difference());
  EXPECT_EQ(j.difference()->step, "prefill.c0.layer0.qt");
}

TEST(Judge, HoldsTheGeneratedTableAgainstTheTokens) {
  const Case c =
      parse_case("model=palm-tiny,layers=1,E=8,F=8,H=8,Q=2,V=8 prefill=ws1d batch=2 gen=3");
  OracleMemo memo;
  const auto known = memo.get(c);
  Findings findings;
  Judge judge(known->answer, known->weights, findings);
  Threads threads(1);
  IntTensor generated = run_inference(make_plan(c), known->weights, known->prompt, threads, &judge,
                                      Hazards::hostile());
  judge.observe_generated(generated);
  EXPECT_EQ(judge.finish().verdict, Verdict::equal);
  generated.data.back() ^= 1;
  judge.observe_generated(generated);
  const Judgement j = judge.finish();
  ASSERT_TRUE(j.difference());
  EXPECT_EQ(j.difference()->pass, "decode.2");
  EXPECT_EQ(j.difference()->index, (Shape{1, 2}));
}

TEST(Judge, DoesNotJudgeARunThatShowedNothing) {
  const Case c = parse_case("model=palm-tiny,layers=1,E=8,F=8,H=8,Q=2,V=8 prefill=ws1d");
  OracleMemo memo;
  const auto known = memo.get(c);
  Findings findings;
  const Judgement j = Judge(known->answer, known->weights, findings).finish();
  EXPECT_EQ(j.verdict, Verdict::not_judged);
  EXPECT_NE(j.explanation(), "");
}

/// Hides one checkpoint from the judge.
class Hider : public Observer {
 public:
  explicit Hider(Judge& judge) : judge_(judge) {}
  void observe(const Scope& scope, const Program& program, const Op* op, const ValueDecl& declared,
               const Sharded& value) override {
    if (declared.role.name != "hidden") judge_.observe(scope, program, op, declared, value);
  }

 private:
  Judge& judge_;
};

TEST(Judge, DoesNotPassARunThatSkippedACheckpoint) {
  const Case c = parse_case("model=palm-tiny,layers=1,E=8,F=8,H=8,Q=2,V=8 prefill=ws1d");
  OracleMemo memo;
  const auto known = memo.get(c);
  Findings findings;
  Judge judge(known->answer, known->weights, findings);
  Hider hider(judge);
  Threads threads(1);
  run_inference(make_plan(c), known->weights, known->prompt, threads, &hider, Hazards::hostile());
  EXPECT_EQ(judge.finish().verdict, Verdict::not_judged);
  EXPECT_EQ(judge.finish().reason(),
            "no complete value of the run is declared as decode.1.layer0.hidden");
}

}  // namespace
}  // namespace shardproof
