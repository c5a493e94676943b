// The model family: the presets beside the palm ones, ALiBi and the bias of the logits are equal
// under several tables, and faults that only they can have are found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/run/inference.h"
#include "golden/verify/scalar_judge.h"
#include "golden/verify/verify.h"
#include "tests/sanitized.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

// ---- equal

struct Family {
  const char *name, *model;
};
class ModelFamily : public testing::TestWithParam<Family> {};

TEST_P(ModelFamily, IsEqualUnderTheTables) {
  OracleMemo memo;
  OneInN chosen(3, "cases");
  for (const char* torus : {"4x2x3", "2x3x4"})
    for (const char* strategies :
         {"prefill=ws1d:heads", "prefill=ws2d:heads", "prefill=ws2d:batch",
          "prefill=wg-xyz:batch decode=ws2d:heads-zy", "prefill=wg-xy:natural decode=ws1d:batch"})
      for (const char* numerics : {"", "regime=f32 schedule=ring", "weights=int8 act=bf16",
                                   "weights=int8 regime=f32 schedule=tree"}) {
        if (!chosen()) continue;
        const Case c = parse_case(
            fmt::format("torus={} model={},layers=1 {} {} batch=24 prompt=3 chunk=2 gen=2 seed=4",
                        torus, GetParam().model, strategies, numerics));
        const Judgement j = verify_case(c, memo);
        EXPECT_EQ(j.verdict, Verdict::equal) << print_case(c) << "\n" << j.explanation();
      }
}

INSTANTIATE_TEST_SUITE_P(All, ModelFamily,
                         testing::Values(Family{"llama", "llama"}, Family{"gptj", "gptj"},
                                         Family{"falcon", "falcon"},
                                         Family{"alibi", "palm-tiny,K=6,rope=alibi"},
                                         Family{"biased", "palm-tiny,bias=ffn,unembed_bias=true"},
                                         Family{"base2", "palm-tiny,K=6,softmax=base2"},
                                         Family{"base2_llama", "llama,softmax=base2"},
                                         Family{"base2_gptj", "gptj,softmax=base2"},
                                         Family{"base2_falcon", "falcon,softmax=base2"},
                                         Family{"base2_alibi",
                                                "palm-tiny,K=6,rope=alibi,bias=all,"
                                                "unembed_bias=true,softmax=base2"}),
                         [](const auto& test) { return std::string(test.param.name); });

// ---- found

Case small(const std::string& strategies, const std::string& numerics = "") {
  return parse_case(
      fmt::format("torus=3x1x2 model=palm-tiny,layers=1,E=12,F=12,H=12,K=3,Q=4,V=12,rope=alibi,"
                  "unembed_bias=true {} {} batch=6 prompt=4 gen=3 seed=5",
                  strategies, numerics));
}

/// By the oracle or, in the f32 regime, by the scalar model alone.
Judgement judged(const Case& c, const FaultHooks& faults) {
  OracleMemo memo;
  if (c.numerics.regime == Regime::exact) {
    VerifyOptions options;
    options.faults = faults;
    return verify_case(c, memo, options);
  }
  const RunPlan plan = make_plan(c);
  const auto known = memo.get(c);
  Findings findings;
  ScalarJudge judge(plan, known->weights, known->prompt, known->answer, findings);
  Threads threads(1);
  const IntTensor generated = run_inference(plan, known->weights, known->prompt, threads, &judge,
                                            Hazards::hostile(), faults, &findings);
  if (!findings.ended()) judge.observe_generated(generated);
  return judge.finish();
}

/// What a score of head h adds for the key at p and the query at t: `local` is h's number among the
/// heads of its chip.
using Term = std::function<double(const std::vector<float>& slopes, std::int64_t h,
                                  std::int64_t local, std::int64_t p, std::int64_t t)>;

/// The first pass's scores with another term in place of slope·(p−t).
FaultHooks with_term(const Case& c, Term term) {
  const std::vector<float> slopes = generate_weights(c.model, c.seed).at("alibi_slopes").data;
  FaultHooks faults;
  faults.result = [=](const Scope& scope, const Program&, const Op& op, const ValueDecl& declared,
                      Sharded& value) {
    if (op.kind != OpKind::attend || declared.role.to_string() != "score" ||
        scope.pass != "prefill.c0")
      return;
    const Shape local = value.local();  // BLHM
    for (int chip = 0; chip < value.torus().chips(); ++chip) {
      const std::int64_t first = value.torus().block(chip, value.layout().axes('H')) * local[2];
      const std::span<float> scores = value.f32_of(chip);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const auto n = static_cast<std::int64_t>(i);
        const std::int64_t p = n % local[3], h = n / local[3] % local[2];
        const std::int64_t t = n / local[3] / local[2] % local[1];
        if (p > t) continue;
        const auto slope = static_cast<double>(slopes[static_cast<std::size_t>(first + h)]);
        scores[i] =
            static_cast<float>(static_cast<double>(scores[i]) - slope * static_cast<double>(p - t) +
                               term(slopes, first + h, h, p, t));
      }
    }
  };
  return faults;
}

double slope_of(const std::vector<float>& slopes, std::int64_t h) {
  return static_cast<double>(slopes[static_cast<std::size_t>(h)]);
}

TEST(AlibiFaults, AreFoundAtTheScores) {
  const std::vector<std::pair<const char*, Term>> faults{
      {"slopes by the chip's own numbering of heads",
       [](const auto& slopes, auto, auto local, auto p, auto t) {
         return slope_of(slopes, local) * static_cast<double>(p - t);
       }},
      {"the sign of p-t", [](const auto& slopes, auto h, auto, auto p,
                             auto t) { return slope_of(slopes, h) * static_cast<double>(t - p); }},
      {"a position early",
       [](const auto& slopes, auto h, auto, auto p, auto t) {
         return slope_of(slopes, h) * static_cast<double>(p - t + 1);
       }},
      {"a position late",
       [](const auto& slopes, auto h, auto, auto p, auto t) {
         return slope_of(slopes, h) * static_cast<double>(p - t - 1);
       }},
      {"no slope", [](const auto&, auto, auto, auto, auto) { return 0.0; }}};
  for (const char* numerics : {"", "regime=f32 schedule=ring"})
    for (const char* strategies : {"prefill=ws2d:heads", "prefill=ws1d:heads decode=ws2d:batch"}) {
      const Case c = small(strategies, numerics);
      EXPECT_EQ(judged(c, {}).verdict, Verdict::equal);
      for (const auto& [what, term] : faults) {
        const Judgement j = judged(c, with_term(c, term));
        ASSERT_EQ(j.verdict, Verdict::different) << what << " " << print_case(c);
        EXPECT_EQ(j.difference()->step, "prefill.c0.layer0.s") << what;
      }
    }
}

TEST(AlibiFaults, SlopesOfOtherHeadsOnAChipAreFound) {
  for (const char* numerics : {"", "regime=f32"}) {
    const Case c = small("prefill=ws2d:heads", numerics);
    FaultHooks faults;
    faults.weight = [](const std::string& name, Sharded& placed) {
      if (name != "alibi_slopes") return;
      for (int chip = 1; chip < placed.torus().chips(); ++chip)  // as if each had the first heads
        std::ranges::copy(placed.f32_of(0), placed.f32_of(chip).begin());
    };
    EXPECT_EQ(judged(c, faults).verdict, Verdict::different);
  }
}

// ---- the bias of the logits

TEST(LogitBiasFaults, OneThatIsCountedOnceForEachPartialSumIsFound) {
  for (const char* numerics : {"", "regime=f32 schedule=ring"}) {
    const Case c = small("prefill=ws2d:heads", numerics);
    const std::vector<float> bias = generate_weights(c.model, c.seed).at("unembed_bias").data;
    FaultHooks faults;
    faults.result = [=](const Scope&, const Program&, const Op& op, const ValueDecl& declared,
                        Sharded& value) {
      if (op.kind != OpKind::bias || declared.role.to_string() != "logits") return;
      const int X = value.torus().size(Axes::parse("x"));
      const std::int64_t V = value.local()[1];
      for (int chip = 0; chip < value.torus().chips(); ++chip) {
        const std::int64_t first = value.torus().block(chip, value.layout().axes('V')) * V;
        const std::span<float> logits = value.f32_of(chip);
        for (std::size_t i = 0; i < logits.size(); ++i) {
          const std::int64_t v = first + static_cast<std::int64_t>(i) % V;
          for (int n = 1; n < X; ++n) logits[i] = logits[i] + bias[static_cast<std::size_t>(v)];
        }
      }
    };
    const Judgement j = judged(c, faults);
    ASSERT_EQ(j.verdict, Verdict::different);
    EXPECT_EQ(j.difference()->step, "prefill.c0.head.logits");
  }
}

TEST(LogitBiasFaults, OneThatAChipLacksIsFoundForEveryChip) {
  for (const char* numerics : {"", "regime=f32"}) {
    const Case c = small("prefill=ws2d:batch", numerics);
    for (int lacking = 0; lacking < c.torus.chips(); ++lacking) {
      FaultHooks faults;
      faults.result = [=](const Scope&, const Program& program, const Op& op,
                          const ValueDecl& declared, Sharded& value) {
        if (program.name != "head" || op.kind != OpKind::bias) return;
        EXPECT_EQ(declared.role.to_string(), "logits");
        for (float& logit : value.f32_of(lacking)) logit = logit * 0.5F;
      };
      const Judgement j = judged(c, faults);
      ASSERT_EQ(j.verdict, Verdict::different) << lacking;
      EXPECT_EQ(j.difference()->chip, c.torus.name(lacking));
      faults.result = nullptr;
      faults.weight = [=](const std::string& name, Sharded& placed) {
        if (name == "unembed_bias")
          for (float& b : placed.f32_of(lacking)) b = 0.0F;
      };
      EXPECT_EQ(judged(c, faults).verdict, Verdict::different) << lacking;
    }
  }
}

/// What the type check says of the head after a change.
std::string typed(const std::function<void(Program& head)>& change) {
  OracleMemo memo;
  VerifyOptions options;
  options.mutate = [&](RunPlan& plan) {
    change(plan.prefill.head);
    change(plan.decode.head);
  };
  const Judgement j = verify_case(small("prefill=ws2d:heads"), memo, options);
  EXPECT_NE(j.verdict, Verdict::equal);
  return j.explanation();
}

TEST(LogitBiasFaults, OneThatIsAddedToPartialSumsOrLaidOutOtherwiseIsIllTyped) {
  const std::string early = typed([](Program& head) {
    for (Op& op : head.ops)
      if (op.kind == OpKind::bias) op.args[0] = "z";
  });
  EXPECT_NE(early.find("bias_c1"), std::string::npos) << early;
  for (const char* layout : {"V_xyz", "V", "V_zy"}) {
    const std::string other = typed([&](Program& head) {
      for (ValueDecl& input : head.inputs)
        if (input.role.to_string() == "weight unembed_bias") input.layout = Layout::parse(layout);
    });
    EXPECT_NE(other.find("bias_c3"), std::string::npos) << other;
  }
}

}  // namespace
}  // namespace shardproof
