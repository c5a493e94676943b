// The steps of model texts: on chips they have the bits that one chip alone has, and those of the
// scalar model, whatever the torus and the layouts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>

#include "golden/bounds/op/ops.h"
#include "golden/bounds/op/scan.h"
#include "tests/golden/scalar/drawn_step.h"
#include "tests/golden/scalar/text_step_forms.h"
#include "tests/weights/expect_error.h"

namespace shardproof {
namespace {

/// Whether two floats have the same bits; slots that were never written are NaN in both.
bool same(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

/// The elements of the whole tensor that differ from what some chip holds.
std::size_t differences(const Sharded& value, const std::vector<float>& whole) {
  std::size_t wrong = 0;
  each_held(value, [&](std::size_t place, std::size_t chip, std::size_t i) {
    wrong += same(value.f32()[chip][i], whole.at(place)) ? 0U : 1U;
  });
  return wrong;
}

std::vector<float> whole_of(const Sharded& value) {
  std::vector<float> whole(static_cast<std::size_t>(element_count(value.shape())));
  each_held(value, [&](std::size_t place, std::size_t chip, std::size_t i) {
    whole[place] = value.f32()[chip][i];
  });
  return whole;
}

/// The step's result in the scalar model, on the whole tensors.
std::vector<float> scalar_result(const RunStep& run, const DrawnStep& step,
                                 const Numerics& numerics) {
  std::map<std::string, scalar::Value> values;
  const Op& op = run.program.ops[0];
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const WholeOperand& operand = step.operands[i];
    scalar::Value value{.layout = run.inputs.at(op.args[i])->layout(),
                        .shape = operand.shape,
                        .parts = {},
                        .ints = operand.integers};
    if (!operand.integer) value.parts = {operand.numbers};
    values[op.args[i]] = std::move(value);
  }
  const scalar::Setting setting{
      .config = any_config(), .torus = step.torus, .act_bf16 = numerics.act == NumberFormat::bf16};
  for (const Op& one : run.program.ops) {
    std::vector<const scalar::Value*> args;
    for (const std::string& arg : one.args) args.push_back(&values.at(arg));
    values[one.results[0].name] = scalar::apply(one, args, setting).at(0);
    values[one.results[0].name].layout = one.results[0].layout;
  }
  return values.at(run.program.outputs[0]).whole();
}

/// Whether the bounds of the step alone allow what one chip has, and not what is changed.
bool bounds_tell(const RunStep& run, const DrawnStep& step, std::vector<float> made) {
  const Op& op = run.program.ops[0];
  std::vector<scalar::Value> values;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const WholeOperand& operand = step.operands[i];
    values.push_back({.layout = run.inputs.at(op.args[i])->layout(),
                      .shape = operand.shape,
                      .parts = {},
                      .ints = operand.integers});
    if (!operand.integer) values.back().parts = {operand.numbers};
  }
  std::vector<const scalar::Value*> args;
  for (const scalar::Value& value : values) args.push_back(&value);
  const bounds::Allowed allowed =
      bounds::allowed(op, 0, args, {}, {.config = any_config(), .torus = Torus(), .rows = {}});
  const auto fits = [&] {
    for (std::size_t i = 0; i < made.size(); ++i)
      if (allowed.bits ? !same(allowed.bits->whole()[i], made[i])
                       : !bounds::allows(allowed.bounds, 0, i, made[i]))
        return false;
    return true;
  };
  if (!fits()) return false;
  made.back() += 1.0F + std::fabs(made.back());
  return std::isnan(made.back()) || !fits();
}

Numerics drawn_numerics(Regime regime) {
  Numerics numerics;
  numerics.regime = regime;
  numerics.act = draw_int(0, 1) == 1 ? NumberFormat::bf16 : NumberFormat::f32;
  return numerics;
}

// Every draw has a torus, and on it a step of each form: which of them are seen is no matter of
// luck.

RC_GTEST_PROP(TextSteps, OnChipsHaveTheBitsOfOneChip, ()) {
  const Torus torus = draw_torus();
  for (const StepForm& form : step_forms()) {
    const DrawnStep step = draw_step(form, torus);
    const RunStep here(form, step, step.torus, true, put_floats);
    const RunStep alone(form, step, Torus(), false, put_floats);
    RC_LOG() << form.call << " on " << step.torus << ", " << print_program(here.program);
    const Numerics exact = drawn_numerics(Regime::exact);
    RC_ASSERT(differences(here.result(exact), whole_of(alone.result(exact))) == 0U);
    // An order of f32 sums is a layout's, unless nothing is summed over chips.
    if (here.program.ops.size() > 1) continue;
    const Numerics f32 = drawn_numerics(Regime::f32);
    RC_ASSERT(differences(here.result(f32), whole_of(alone.result(f32))) == 0U);
  }
}

RC_GTEST_PROP(TextSteps, OnChipsHaveTheBitsOfTheScalarModel, ()) {
  const Torus torus = draw_torus();
  for (const StepForm& form : step_forms()) {
    const DrawnStep step = draw_step(form, torus);
    const RunStep here(form, step, step.torus, true, put_floats);
    RC_LOG() << form.call << " on " << step.torus << ", " << print_program(here.program);
    const Numerics f32 = drawn_numerics(Regime::f32);
    RC_ASSERT(differences(here.result(f32), scalar_result(here, step, f32)) == 0U);
  }
}

RC_GTEST_PROP(TextSteps, OnOneChipAreInsideOfTheirBounds, ()) {
  const Torus torus = draw_torus();
  for (const StepForm& form : step_forms()) {
    const DrawnStep step = draw_step(form, torus);
    const RunStep alone(form, step, Torus(), false, put_floats);
    RC_LOG() << form.call;
    Numerics f32;
    f32.regime = Regime::f32;
    RC_ASSERT(bounds_tell(alone, step, whole_of(alone.result(f32))));
  }
}

TEST(TextSteps, ReadAsTheyPrint) {
  for (const StepForm& form : step_forms()) {
    SCOPED_TRACE(form.call);
    const Program program = parse_program("layer", "y : B = " + form.call + " is in");
    EXPECT_EQ(program.ops[0].to_string(), form.call);
    EXPECT_EQ(program.ops[0].args.size(), form.operands.size());
  }
}

}  // namespace
}  // namespace shardproof
