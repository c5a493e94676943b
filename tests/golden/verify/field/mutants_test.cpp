// What the field regime sees of the 32 mutants, and what exact does on weights that hide them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "tests/golden/verify/field/mutant.h"
#include "weights/base/error.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

Case in_field(const Mutant& mutant) {
  Case c = small_case(mutant.line);
  c.numerics.regime = Regime::field;
  return c;
}

std::string first_step(const Judgement& judgement) {
  return judgement.findings.empty() ? "" : judgement.findings[0].step;
}

std::string_view to_string(SeenBy by) {
  switch (by) {
    case SeenBy::field:
      return "field op";
    case SeenBy::index:
      return "index code";
    default:
      return "silent";
  }
}

/// The tables of RoPE become rotations by whole multiples of an angle: (c + is)^p with
/// c² + s² = 1, where t = tan of half of it is 2, 3, 4, ...
void make_rotations(const std::string& name, Sharded& placed) {
  if (name != "rope_cos" && name != "rope_sin") return;
  const Field& field = *placed.field().field;
  const std::int64_t P = placed.shape()[0], J = placed.shape()[1];
  const FieldElement one = field.integer(1);
  for (int chip = 0; chip < placed.torus().chips(); ++chip)
    for (std::int64_t j = 0; j < J; ++j) {
      const FieldElement t = field.integer(j + 2), square = field.multiply(t, t);
      const FieldElement below = field.inverse(field.add(one, square));
      const FieldElement c = field.multiply(field.subtract(one, square), below);
      const FieldElement s = field.multiply(field.add(t, t), below);
      FieldElement cos = one, sin = field.integer(0);
      for (std::int64_t p = 0; p < P; ++p) {
        placed.field_of(chip)[static_cast<std::size_t>(p * J + j)] = name == "rope_cos" ? cos : sin;
        const FieldElement next = field.subtract(field.multiply(cos, c), field.multiply(sin, s));
        sin = field.add(field.multiply(cos, s), field.multiply(sin, c));
        cos = next;
      }
    }
}

TEST(Mutants, OfUnknownWordsAreRefused) {
  const std::string begin = "# text\nmutant 1: lost\n";
  const std::vector<Mutant> one =
      read_mutants(begin + "case torus=1x2x1\nseen field prefill.c0.q\n");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].line, "torus=1x2x1");
  EXPECT_EQ(one[0].by, SeenBy::field);
  for (const char* wrong :
       {"sees field prefill.c0.q", "seen nowhere prefill.c0.q", "planted a = b", "refused a",
        "hook lost", "hook reduced_again a", "hook appended_at x y", "mutant 2"})
    EXPECT_ANY_THROW(read_mutants(begin + wrong)) << wrong;
  EXPECT_THROW(read_mutants("case torus=1x2x1\n"), std::invalid_argument);
}

TEST(Mutants, AreAll32) {
  std::set<std::string> numbers;
  for (const Mutant& mutant : all_mutants()) {
    numbers.insert(mutant.number.substr(0, mutant.number.find(',')));
    EXPECT_EQ(mutant.by == SeenBy::nothing, !mutant.silent.empty()) << mutant.number;
  }
  for (int n = 1; n <= 32; ++n) EXPECT_TRUE(numbers.contains(fmt::format("{}", n))) << n;
  EXPECT_EQ(numbers.size(), 32U);
}

TEST(Mutants, TheFieldSeesEachThatIsNotSilent) {
  OracleMemo memo;
  int seen = 0, silent = 0;
  for (const Mutant& mutant : all_mutants()) {
    SCOPED_TRACE(mutant.number + ": " + mutant.what);
    const Case c = in_field(mutant);
    const Outcome right = run_with(nullptr, c, memo);
    ASSERT_EQ(right.judgement.verdict, Verdict::equal) << right.judgement.explanation();
    const Outcome wrong = run_with(&mutant, c, memo);
    EXPECT_EQ(first_step(wrong.judgement), mutant.at) << wrong.judgement.explanation();
    EXPECT_EQ(wrong.judgement.verdict, mutant.at.empty() ? Verdict::equal : Verdict::different)
        << wrong.judgement.explanation();
    if (!mutant.at.empty()) {
      EXPECT_NE(wrong.judgement.difference(), nullptr) << wrong.judgement.explanation();
    }
    // Not only by a named value: by what the model answers, in a run that went on to its end.
    EXPECT_EQ(wrong.outputs.size(), right.outputs.size());
    const bool same_outputs = wrong.outputs == right.outputs;
    if (mutant.number != "32") {
      EXPECT_EQ(same_outputs, mutant.by == SeenBy::nothing);
    }
    ++(mutant.by == SeenBy::nothing ? silent : seen);
    std::cout << fmt::format("{:<28} {:<17} {:<26} {}\n", mutant.number, to_string(mutant.by),
                             mutant.at, mutant.silent);
  }
  std::cout << seen << " seen, " << silent << " silent in logits and tokens\n";
}

/// The tori with an axis of 1 where this has more.
std::vector<Torus> smaller(const Torus& torus) {
  std::vector<Torus> all;
  for (const Axis gone : {Axis::x, Axis::y, Axis::z}) {
    const auto size = [&](Axis axis) { return axis == gone ? 1 : torus.size(axis); };
    if (torus.size(gone) > 1) all.emplace_back(size(Axis::x), size(Axis::y), size(Axis::z));
  }
  return all;
}

TEST(Mutants, AreEachOnTheSmallestTorusThatShowsIt) {
  OracleMemo memo;
  for (const Mutant& mutant : all_mutants()) {
    // With fewer chips than these, 4 and 10 have other shapes too; 21 is about how K is sharded.
    const std::set<std::string> others{"4", "10"};
    if (mutant.by == SeenBy::nothing || others.contains(mutant.number) ||
        mutant.number.starts_with("21"))
      continue;
    Case c = in_field(mutant);
    for (const Torus& torus : smaller(c.torus)) {
      SCOPED_TRACE(mutant.number + ": " + mutant.what + ", on " + torus.to_string());
      c.torus = torus;
      EXPECT_EQ(run_with(&mutant, c, memo).outputs, run_with(nullptr, c, memo).outputs);
    }
  }
}

TEST(Mutants, TheTypeCheckRefusesThoseOfPrograms) {
  for (const Mutant& mutant : all_mutants()) {
    SCOPED_TRACE(mutant.number + ": " + mutant.what);
    for (const Edits& edits : {mutant.refused, mutant.planted}) {
      if (edits.empty()) continue;
      RunPlan plan = make_plan(in_field(mutant));
      edit_layers(plan, edits);
      Findings findings;
      const bool accepted = check(plan, findings).has_value();
      // A scale is where it may be, by its type.
      EXPECT_EQ(accepted, mutant.number.starts_with("27"));
    }
  }
}

TEST(Mutants, Number32IsSilentWhereTablesRotate) {
  OracleMemo memo;
  for (Mutant mutant : all_mutants()) {
    if (mutant.number != "32") continue;
    const auto plant = mutant.hooks;
    Mutant right = mutant;
    right.hooks = [](const Case&, const LatestValues&, FaultHooks& hooks) {
      hooks.weight = make_rotations;
    };
    mutant.hooks = [&](const Case& c, const LatestValues& shown, FaultHooks& hooks) {
      plant(c, shown, hooks);
      hooks.weight = make_rotations;
    };
    const Case c = in_field(mutant);
    const Outcome rotated = run_with(&right, c, memo);
    ASSERT_FALSE(rotated.outputs.empty());
    EXPECT_EQ(run_with(&mutant, c, memo).outputs, rotated.outputs);
    EXPECT_NE(run_with(nullptr, c, memo).outputs, rotated.outputs);
  }
}

/// Weights with which the layer's output is its input.
Weights without_outputs(const Case& c) {
  const Weights all = generate_weights(c.model, c.seed);
  std::map<std::string, Tensor> tensors = all.tensors();
  for (const char* name : {"layer0.wo", "layer0.w_out"})
    std::fill(tensors.at(name).data.begin(), tensors.at(name).data.end(), 0.0F);
  return {c.model, std::move(tensors)};
}

TEST(Mutants, ZeroOutputMatricesHideFromExactWhatTheFieldSees) {
  int all = 0, by_field = 0, by_outputs = 0, by_values = 0;
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.by == SeenBy::nothing) continue;
    SCOPED_TRACE(mutant.number + ": " + mutant.what);
    ++all;
    OracleMemo memo;
    Case c = small_case(mutant.line);
    const Weights weights = without_outputs(c);
    const Outcome right = run_with(nullptr, c, memo, &weights);
    EXPECT_TRUE(right.judgement.findings.empty()) << right.judgement.explanation();
    const Outcome wrong = run_with(&mutant, c, memo, &weights);
    const bool outputs = wrong.outputs != right.outputs;
    by_outputs += outputs ? 1 : 0;
    by_values += wrong.judgement.findings.empty() ? 0 : 1;
    c.numerics.regime = Regime::field;
    const Outcome clean = run_with(nullptr, c, memo, &weights);
    const Outcome planted = run_with(&mutant, c, memo, &weights);
    const bool in_field = planted.outputs != clean.outputs;
    EXPECT_TRUE(in_field);
    by_field += in_field ? 1 : 0;
    if (outputs) std::cout << "exact sees " << mutant.number << ": " << mutant.what << "\n";
  }
  std::cout << "of " << all << " mutants, W_O = W_out = 0: by logits and tokens exact sees "
            << by_outputs << ", the field " << by_field << "; by all named values exact sees "
            << by_values << "\n";
  EXPECT_EQ(by_field, all);  // it has no such data: its numbers are drawn
  // Those that are seen lie behind the last block, or in the lookup of ids.
  EXPECT_GE(by_outputs, 1);
  EXPECT_LE(4 * by_outputs, all) << "a quarter";
}

}  // namespace
}  // namespace shardproof
