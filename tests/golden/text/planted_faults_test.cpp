// What judges the run of a model's text, shown failing: a wrong element of any step, on any chip; a
// program of another text.
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "golden/verify/verify.h"
#include "tests/golden/text/text_case.h"
#include "tests/sanitized.h"

namespace shardproof {
namespace {

/// Changes the first element that a chip has computed of one step.
FaultHooks wrong_element(const std::string& program, const std::string& value, int chip) {
  FaultHooks hooks;
  hooks.computed = [=](const Scope& scope, const Program& of, const Op&, const ValueDecl& declared,
                       int on, std::span<std::byte> elements) {
    if (of.name != program || declared.name != value || on != chip || elements.empty() ||
        scope.pass != "decode.1")
      return;
    // A partial sum in f64 has bits that no f32 depends on, so there it is the exponent; only the
    // largest of partial maxima shows in the exact regime.
    if (declared.layout.is_partial_max())
      elements[3] = std::byte{0x7e};
    else if (declared.layout.is_partial())
      elements[7] ^= std::byte{0x40};
    else
      elements[0] ^= std::byte{1};
  };
  return hooks;
}

void every_step_is_judged(const char* text, const char* keys) {
  const Case c = case_of_text(text, keys);
  const TypedPlan typed = make_typed_plan(c);
  OracleMemo memo;
  int planted = 0;
  const OneInN steps(9, "steps with a fault");
  for (const Program* program : typed.plan.decode.all())
    for (const Op& op : program->ops) {
      const ValueDecl& result = op.results[0];
      // A step that is only relabelled is computed by nobody.
      if (op.kind == OpKind::split_dim || op.kind == OpKind::merge_dim) continue;
      const int chip = ++planted % c.torus.chips();
      if (!steps(planted)) continue;
      VerifyOptions options;
      options.hazards = {};
      options.hazards.alone = true;
      options.faults = wrong_element(program->name, result.name, chip);
      const Judgement judgement = verify_plan(typed, memo, options);
      EXPECT_EQ(judgement.verdict, Verdict::different)
          << program->name << " " << result.name << " on chip " << chip << "\n"
          << judgement.reason();
      if (judgement.verdict != Verdict::different) continue;
      EXPECT_NE(judgement.findings[0].step.find(result.name), std::string::npos)
          << result.name << " but " << judgement.findings[0].step;
    }
  EXPECT_GT(planted, 40);
}

TEST(FaultsInTexts, OfEveryStepAreFoundInTheExactRegime) {
  every_step_is_judged("gemma-2", "torus=2x2x2 prefill=ws2d:batch");
}
TEST(FaultsInTexts, OfEveryStepAreFoundInTheF32Regime) {
  every_step_is_judged("qwen3", "torus=4x2x3 prefill=ws1d:heads regime=f32");
}
TEST(FaultsInTexts, OfEveryStepAreFoundInTheFieldRegime) {
  every_step_is_judged("gpt-2", "torus=1x3x1 prefill=wg-xyz:batch regime=field");
}

TEST(FaultsInTexts, OfEveryStepOfExpertsAreFound) {
  every_step_is_judged("experts", "torus=2x2x2 prefill=ws2d:batch");
  every_step_is_judged("experts", "torus=2x1x3 prefill=ws2d:heads regime=f32");
}

/// A plan with the programs of a text in which one line is another.
RunPlan plan_with(const Case& c, const std::string& old_line, const std::string& new_line) {
  std::string text = print_model_text(text_model(c.model)->text());
  const auto at = text.find(old_line);
  EXPECT_NE(at, std::string::npos) << old_line;
  text.replace(at, old_line.size(), new_line);
  return plan_of_other_text(c, parse_model_text(text));
}

/// Texts of one file name are told apart by what they say: a file may have changed between runs.
TEST(FaultsInTexts, AreNotHiddenByTheAnswerForAnotherText) {
  const Case c = case_of_text("gpt-2", "torus=2x2x2 prefill=ws2d:batch");
  std::string text = print_model_text(text_model(c.model)->text());
  const std::string old_line = "hidden : BLF = store(mul(half, bent1))";
  text.replace(text.find(old_line), old_line.size(), "hidden : BLF = store(mul(bent1, bent1))");
  Case other = c;
  other.model = model_config(
      std::make_shared<const TextModel>(parse_model_text(text), TextKeys{}, print_model(c.model)));
  for (const char* regime : {"exact", "field"}) {
    OracleMemo memo;
    for (const Case& asked : {c, other}) {
      Case own = asked;
      own.numerics.regime = parse_case(std::string("regime=") + regime).numerics.regime;
      EXPECT_EQ(verify_case(own, memo).verdict, Verdict::equal) << regime;
    }
  }
}

struct OtherLine {
  const char *text, *old_line, *new_line;
};
constexpr OtherLine kOtherLines[] = {
    {"llama-3", "far : BLM = sub(slot, pos)", "far : BLM = sub(slot, add(pos, 1))"},
    {"llama-3", "within(far, -inf, 0)", "within(far, -3, 0)"},
    {"llama-3", "exp(sub(score, max))", "exp(sub(max, score))"},
    {"llama-3", "store(silu(gate))", "store(sigmoid(gate))"},
    {"llama-3", "store(mul(act, up))", "store(mul(up, up))"},
    {"llama-3", "turn(k, Q, half rotary)", "turn(k, Q, interleaved rotary)"},
    {"llama-3", "BLKGQ; share, v_cache)", "BLKGQ; share, k_cache)"},
    {"gemma-2", "store(mul(bent, cap))", "store(mul(bent, scale))"},
    {"gemma-2", "where see_near = store", "where see = store"},
    {"gemma-2", "add(g2, 1)", "add(g2, 2)"},
    {"gpt-2", "mul(cube, 0.044715)", "mul(cube, 0.0447)"},
    {"gpt-2", "store(add(row, place))", "store(sub(row, place))"},
    {"qwen3", "denom : BLKG = sum(exp, M)", "denom : BLKG = max(exp, M)"},
};

TEST(FaultsInTexts, OfAnotherLineAreFoundInEachRegime) {
  for (const OtherLine& other : kOtherLines)
    for (const char* regime : {"exact", "f32", "field"}) {
      const Case c = case_of_text(
          other.text, fmt::format("torus=2x2x2 prefill=ws2d:batch prompt=6 regime={}", regime));
      OracleMemo memo;
      TypedPlan typed = make_typed_plan(plan_with(c, other.old_line, other.new_line));
      const Judgement judgement = verify_plan(typed, memo);
      EXPECT_EQ(judgement.verdict, Verdict::different)
          << other.text << ": " << other.new_line << " in " << regime << "\n"
          << judgement.reason();
    }
}

}  // namespace
}  // namespace shardproof
