// Runs of the field regime: equal for every strategy, different for every fault.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "golden/verify/field_run.h"
// gtest first
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "golden/cases/any_case.h"
#include "golden/cases/strata.h"
#include "tests/golden/faults.h"
#include "tests/golden/one_strategy.h"
#include "weights/storage/generator.h"

namespace shardproof {
namespace {

Case in_field(Case c) {
  c.numerics.regime = Regime::field;
  c.numerics.schedule = Schedule::group;
  c.numerics.acc = c.numerics.wire = NumberFormat::f32;
  c.sampling = {};
  return c;
}

Case small(int layers = 2) {
  Case c =
      in_field(parse_case("torus=2x1x3 batch=6 gen=3 prompt=5 chunk=2 seed=5 "
                          "model=palm-tiny,E=12,F=12,H=6,Q=4,V=48"));
  c.model.layers = layers;
  return c;
}

Judgement judged(const Case& c, const VerifyOptions& options = {}, FieldSetting setting = {}) {
  OracleMemo memo;
  return judge_in_field(make_plan(c), memo, options, setting);
}

RC_GTEST_PROP(FieldRun, RandomCasesAreEqual, ()) {
  const Case c = in_field(*any_case());
  OracleMemo memo;
  const Judgement j = verify_case(c, memo);
  RC_ASSERT(j.verdict == Verdict::equal);
  RC_ASSERT(j.field.has_value());
  RC_ASSERT(j.field->log2_counted < -60.0);
}

TEST(FieldRun, SaysWhatItShows) {
  const Judgement j = judged(small());
  ASSERT_EQ(j.verdict, Verdict::equal) << j.explanation();
  EXPECT_EQ(j.field->to_string(),
            "equal for all inputs, as formulas: all weights, tables, scales (this torus, these "
            "sizes, lengths, positions; 42 of 48 ids looked up); a program with another formula "
            "passes with probability < 2^-60 over the seed");
}

/// The halves of the batch change places, chip by chip.
void swap_rows(const Scope&, const Program&, const Op&, const ValueDecl& declared, Sharded& value) {
  if (!value.holds_field() || declared.role.to_string() != "norm" || declared.layout.is_partial())
    return;
  const auto first = value.field_of(0), second = value.field_of(1);
  std::swap_ranges(first.begin(), first.end(), second.begin());
}

// Rows that change places are seen whatever the batch is; an answer for all inputs is given only
// where no two tokens have one id.
TEST(FieldRun, RowsHaveIdsOfTheirOwn) {
  for (const int batch : {2, 32, 34, 64, 66, 100}) {
    Case c = parse_case(
        fmt::format("torus=2x1x1 model=palm-tiny,layers=1,V=264 prefill=dp decode=dp regime=field "
                    "prompt=7 gen=2 seed=3 batch={}",
                    batch));
    const Judgement right = judged(c);
    ASSERT_EQ(right.verdict, Verdict::equal) << right.explanation();
    EXPECT_EQ(right.field->distinct_ids, batch * 8 <= 264) << batch;
    EXPECT_TRUE(right.field->to_string().starts_with(batch * 8 <= 264 ? "equal for all inputs, "
                                                                      : "equal for these ids, "));
    VerifyOptions options;
    options.faults.result = swap_rows;
    EXPECT_EQ(judged(c, options).verdict, Verdict::different) << batch;
  }
}

/// Changes one element of one step's result on one chip.
FaultHooks corrupted(const std::string& step, int chip, const FieldElement& by, bool& done) {
  FaultHooks faults;
  faults.result = [=, &done](const Scope& scope, const Program& program, const Op&,
                             const ValueDecl& declared, Sharded& value) {
    if (scope.step(program, declared.name) != step || !value.holds_field()) return;
    const auto elements = value.field_of(chip);
    if (elements.empty()) return;
    for (std::size_t n = 0; n < 3; ++n) elements.back().lane[n] ^= by.lane[n];
    done = true;
  };
  return faults;
}

/// The steps that compute, of every pass and layer.
std::set<std::string> steps_of(const Case& c) {
  class Names : public Observer {
   public:
    void observe(const Scope& scope, const Program& program, const Op* op,
                 const ValueDecl& declared, const Sharded& value) override {
      if (op != nullptr && value.holds_field()) names.insert(scope.step(program, declared.name));
    }
    std::set<std::string> names;
  } names;
  EXPECT_EQ(judged(c, {.observer = &names}).verdict, Verdict::equal);
  return names.names;
}

TEST(FieldRun, EveryStepIsJudgedInEveryLaneAndOnEveryChip) {
  // Every step of every pass, the lanes and chips by turns; each of the passes and programs.
  const Case c = small(1);
  std::size_t turn = 0;
  std::set<std::string> passes;
  for (const std::string& step : steps_of(c)) {
    FieldElement bit{};
    bit.lane[turn % 3] = std::uint64_t{1} << (turn % 60);
    bool done = false;
    const int chip = static_cast<int>(turn++ / 3 % 6);
    const Judgement j = judged(c, {.faults = corrupted(step, chip, bit, done)});
    EXPECT_TRUE(done) << step;
    ASSERT_EQ(j.verdict, Verdict::different) << step << " on chip " << chip;
    ASSERT_FALSE(j.findings.empty());
    EXPECT_EQ(j.findings[0].step, step);
    passes.insert(step.substr(0, step.find('.', step.find('.') + 1)));
  }
  EXPECT_EQ(passes, (std::set<std::string>{"decode.1", "decode.2", "prefill.c0", "prefill.c1",
                                           "prefill.c2"}));
}

TEST(FieldRun, EveryChipIsJudged) {
  const Case c = small(1);
  const std::set<std::string> steps = steps_of(c);
  const auto layer = steps.lower_bound("decode.2.layer0.");
  ASSERT_NE(layer, steps.end());
  for (const std::string& step : {*layer, *std::next(layer, 9)})
    for (int chip = 0; chip < 6; ++chip) {
      FieldElement bit{};
      bit.lane[static_cast<std::size_t>(chip) % 3] = 2;
      bool done = false;
      const Judgement j = judged(c, {.faults = corrupted(step, chip, bit, done)});
      EXPECT_TRUE(done) << step;
      ASSERT_EQ(j.verdict, Verdict::different) << step << " on chip " << chip;
      EXPECT_EQ(j.findings.at(0).step, step);
    }
}

// A lookup that is wrong for an id of which the passes have none.
TEST(FieldRun, AnIdThatNoPassLooksUpIsJudged) {
  const Case c = small(1);
  VerifyOptions options;
  options.faults.result = [](const Scope& scope, const Program&, const Op& op, const ValueDecl&,
                             Sharded& value) {
    if (op.kind != OpKind::embed_lookup || scope.pass != "all_ids") return;
    value.field_of(5).back().lane[1] ^= 1;
  };
  const Judgement j = judged(c, options);
  EXPECT_EQ(j.verdict, Verdict::different);
  ASSERT_FALSE(j.findings.empty());
  EXPECT_EQ(j.findings[0].pass, "all_ids");
}

TEST(FieldRun, WhatWasNeverWrittenIsNoNumber) {
  const Case c = small(1);
  bool done = false;
  VerifyOptions options;
  options.faults.result = [&](const Scope& scope, const Program&, const Op&,
                              const ValueDecl& declared, Sharded& value) {
    if (scope.pass != "prefill.c0" || declared.role.to_string() != "gate" || done) return;
    value.field_of(0)[0] = Field::unwritten();
    done = true;
  };
  const Judgement j = judged(c, options);
  EXPECT_TRUE(done);
  EXPECT_EQ(j.verdict, Verdict::different);
}

TEST(FieldRun, ADenominatorOfZeroIsNamed) {
  // With p = 7 two draws soon meet one.
  OracleMemo memo;
  bool named = false;
  for (std::uint64_t seed = 1; seed <= 20 && !named; ++seed) {
    Case c = small();
    c.seed = seed;
    try {
      const Judgement j = judge_in_field(make_plan(c), memo, {}, {.bits = 3, .lanes = 3});
      for (const Finding& found : j.findings) named = named || found.label == "field_zero";
    } catch (const Error& error) {
      EXPECT_EQ(error.label(), "field_zero");
      EXPECT_NE(std::string(error.what()).find("denom"), std::string::npos) << error.what();
      named = true;
    }
  }
  EXPECT_TRUE(named);
}

// No draw explains a denominator that is 0 in the sharded program alone: a mask that hides all.
TEST(FieldRun, AMaskThatHidesEveryKeyNamesItsStep) {
  class Positions : public Observer {
   public:
    void observe(const Scope&, const Program&, const Op*, const ValueDecl& declared,
                 const Sharded& value) override {
      // Of this test's own run: the values are no constants.
      if (declared.role.to_string() == "input pos") positions = const_cast<Sharded*>(&value);
    }
    Sharded* positions = nullptr;
  } seen;
  VerifyOptions options;
  options.observer = &seen;
  options.faults.result = [&](const Scope&, const Program&, const Op&, const ValueDecl& declared,
                              Sharded&) {
    if (declared.role.to_string() != "v_cache") return;
    for (int chip = 0; chip < seen.positions->torus().chips(); ++chip)
      for (std::int32_t& position : seen.positions->i32_of(chip)) position = -1;
  };
  const Judgement j = judged(small(1), options);
  EXPECT_EQ(j.verdict, Verdict::refused);
  ASSERT_EQ(j.findings.size(), 1U);
  EXPECT_EQ(j.findings[0].label, "field_zero");
  EXPECT_NE(j.explanation().find("field_zero: prefill.c0.layer0."), std::string::npos)
      << j.explanation();
  EXPECT_NE(j.explanation().find(" = attend("), std::string::npos) << j.explanation();
}

TEST(FieldRun, RefusesWhatHasNoMeaning) {
  for (const char* key : {"schedule=ring", "acc=bf16", "wire=bf16"})
    EXPECT_THROW(make_plan(parse_case(std::string("torus=2x1x3 regime=field ") + key)), Error)
        << key;
}

TEST(FieldRun, GivenWeightsHaveNoEffectAndThatIsSaid) {
  const Case c = small(1);
  const Weights given = generate_weights(c.model, 99);
  OracleMemo memo;
  EXPECT_EQ(verify_case(c, memo, {.weights = &given}).notes,
            std::vector<std::string>(
                {"regime=field draws its numbers: those of the weights file have no effect"}));
  EXPECT_TRUE(verify_case(c, memo).notes.empty());
}

TEST(FieldRun, BothRegimesAreReadTogether) {
  OracleMemo memo;
  VerifyOptions both;
  both.also_field = true;
  Case c = small();
  c.numerics.regime = Regime::exact;
  const Judgement equal = verify_case(c, memo, both);
  EXPECT_EQ(equal.verdict, Verdict::equal);
  EXPECT_TRUE(equal.reading.starts_with("equal bits on this input; equal for all inputs"))
      << equal.reading;
  both.faults = local_statistics();
  const Judgement different = verify_case(c, memo, both);
  EXPECT_EQ(different.verdict, Verdict::different);
  EXPECT_TRUE(different.reading.starts_with("different bits and another formula"))
      << different.reading;
  // What only floats do is left out, and named.
  both.faults = {};
  for (const auto& [keys, words] :
       {std::pair{"regime=f32 schedule=ring", ") (seed="},
        std::pair{"wire=bf16", ", but for what wire=bf16 rounds (seed="},
        std::pair{"regime=f32 acc=bf16 wire=bf16",
                  ", but for what acc=bf16 and wire=bf16 rounds (seed="}}) {
    Case rounding =
        parse_case(fmt::format("torus=2x1x3 batch=6 gen=3 prompt=5 chunk=2 seed=5 "
                               "model=palm-tiny,E=12,F=12,H=6,Q=4,V=48 {}",
                               keys));
    const Judgement j = verify_case(rounding, memo, both);
    EXPECT_EQ(j.verdict, Verdict::equal) << j.explanation();
    EXPECT_EQ(j.reading.find(words) != std::string::npos, words[0] == ',') << j.reading;
    EXPECT_NE(j.reading.find("(seed=5)"), std::string::npos) << j.reading;
  }
  both.field_seed = 77;
  EXPECT_TRUE(verify_case(c, memo, both).reading.ends_with(" (seed=77)"));
  both.field_seed = {};
  // A fault that the floats of this input hide.
  both.faults.result = swap_rows;
  Case rows = parse_case("torus=2x1x1 model=palm-tiny,layers=1 prefill=dp decode=dp batch=4");
  const Judgement hidden = verify_case(rows, memo, both);
  EXPECT_EQ(hidden.verdict, Verdict::different);
  EXPECT_TRUE(hidden.reading.starts_with("equal bits, but another formula")) << hidden.reading;
  ASSERT_FALSE(hidden.findings.empty());
  EXPECT_TRUE(hidden.findings[0].step.ends_with("layer0.xn")) << hidden.findings[0].step;
  // A rounding that only floats have.
  both.faults = {};
  both.faults.result = [](const Scope&, const Program&, const Op&, const ValueDecl& declared,
                          Sharded& value) {
    if (declared.role.to_string() != "hidden" || value.holds_field()) return;
    value.f32_of(0)[0] += 1.0F;
  };
  const Judgement bits = verify_case(c, memo, both);
  EXPECT_EQ(bits.verdict, Verdict::different);
  EXPECT_TRUE(bits.reading.starts_with("different bits, but the same formula")) << bits.reading;
}

TEST(FieldRun, DataThatHideAFaultDoNotHideItHere) {
  // With zeros for all that leaves a block, its inside does not matter to floats beyond it; with
  // equal rows nothing that mixes up rows shows. The judge sees every value, so take a fault that
  // acts on what such data make equal: a head's scores of another head, all weights being equal.
  OracleMemo memo;
  Case c = small();
  c.numerics.regime = Regime::exact;
  std::map<std::string, Tensor> ones;
  for (const WeightSpec& spec : weight_specs(c.model)) {
    ones.emplace(spec.name, Tensor(spec.shape, 1.0F));
  }
  const Weights weights(c.model, std::move(ones));
  VerifyOptions options;
  options.weights = &weights;
  options.also_field = true;
  // Two neighbouring channels of the gate change places.
  options.faults.result = [](const Scope&, const Program&, const Op&, const ValueDecl& declared,
                             Sharded& value) {
    if (declared.role.to_string() != "gate" || declared.layout.is_partial()) return;
    for (int chip = 0; chip < value.torus().chips(); ++chip)
      if (value.holds_field())
        std::swap(value.field_of(chip)[0], value.field_of(chip)[1]);
      else
        std::swap(value.f32_of(chip)[0], value.f32_of(chip)[1]);
  };
  const Judgement j = verify_case(c, memo, options);
  // The exact regime alone does not prove such data (evidence), and the field sees the fault.
  EXPECT_NE(j.verdict, Verdict::equal);
  VerifyOptions field_alone = options;
  EXPECT_EQ(judged(c, field_alone).verdict, Verdict::different);
}

}  // namespace
}  // namespace shardproof
