// The steps of model texts in the field regime: on chips they have the elements that one chip alone
// has.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/golden/scalar/drawn_step.h"
#include "tests/golden/scalar/text_step_forms.h"

namespace shardproof {
namespace {

std::shared_ptr<const Field> field_of(std::uint64_t seed) {
  FieldSetting setting;
  setting.seed = seed;
  return std::make_shared<const Field>(setting);
}

/// Puts field elements that stand for the operand's numbers; zeros stay, for indicators.
auto put_elements(const std::shared_ptr<const Field>& field) {
  return [field](const WholeOperand& operand, const Layout& layout, const Torus& torus) {
    if (operand.integer) return put_floats(operand, layout, torus);
    Array<FieldElement> t(operand.shape);
    const FieldFunction stream("operand " + operand.letters);
    for (std::size_t i = 0; i < t.data.size(); ++i)
      t.data[i] = operand.numbers[i] == 0 ? FieldElement{} : field->input(stream, i);
    return shared(shard(t, layout, torus, field));
  };
}

RC_GTEST_PROP(TextStepsInTheField, OnChipsHaveTheElementsOfOneChip, ()) {
  const auto field = field_of(7);
  const Torus torus = draw_torus();
  for (const StepForm& form : step_forms()) {
    if (form.call.starts_with("top")) continue;  // numbers of a field have no order
    const DrawnStep step = draw_step(form, torus);
    const RunStep here(form, step, step.torus, true, put_elements(field));
    const RunStep alone(form, step, Torus(), false, put_elements(field));
    RC_LOG() << form.call << " on " << step.torus;
    Numerics numerics;
    numerics.regime = Regime::field;
    numerics.act = draw_int(0, 1) == 1 ? NumberFormat::bf16 : NumberFormat::f32;
    const Sharded sharded = here.result(numerics, field), whole = alone.result(numerics, field);
    std::size_t wrong = 0;
    each_held(sharded, [&](std::size_t place, std::size_t chip, std::size_t i) {
      const FieldElement& wanted = whole.field().values[0].at(place);
      wrong += sharded.field().values[chip][i] == wanted ? 0U : 1U;
    });
    RC_ASSERT(wrong == 0U);
  }
}

TEST(TextStepsInTheField, TopIsRefused) {
  const auto field = field_of(7);
  const StepForm form{"top(x, E, 1)", {"BE"}, "E"};
  DrawnStep step;
  step.axes = {{'B', {}}, {'E', {}}};
  step.operands.push_back({"BE", {1, 2}, {1.0F, 2.0F}, {}, false});
  Numerics numerics;
  numerics.regime = Regime::field;
  try {
    RunStep(form, step, Torus(), false, put_elements(field)).result(numerics, field);
    FAIL() << "it is not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.label(), "top_order");
  }
}

/// The degree of a map's result on operands of degree 1 with dims BE, 2x3, on two chips of x.
struct Degree {
  FieldDegree degree;
  FieldCounts counts;
};

Degree degree_of(const std::string& call, const std::string& second = "") {
  const auto field = field_of(3);
  const Torus torus(2, 1, 1);
  Program program = parse_program("layer", "y : B_xE = " + call + " is in");
  if (!second.empty()) {
    program.ops.push_back(parse_program("layer", "z : B_xE = " + second + " is in").ops[0]);
    program.outputs = {"z"};
  } else {
    program.outputs = {"y"};
  }
  std::map<std::string, SharedValue> inputs;
  for (const char* name : {"a", "b", "c"}) {
    Array<FieldElement> t({2, 3});
    const FieldFunction stream(name);
    for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = field->input(stream, i);
    inputs[name] = shared(shard(t, Layout::parse("B_xE"), torus, field));
  }
  Threads threads(1);
  Execution execution = any_execution(threads);
  execution.numerics.regime = Regime::field;
  const auto outputs = execute(program, inputs, execution);
  return {outputs.at(program.outputs[0])->field().degree, field->counts()};
}

TEST(DegreesOfMaps, FollowTheExpression) {
  const auto a_of = [](const std::string& call) { return degree_of(call).degree.a; };
  EXPECT_EQ(a_of("map(a)"), 1);
  EXPECT_EQ(a_of("map(mul(mul(a, b), add(a, c)))"), 3);
  EXPECT_EQ(a_of("map(mul(a, 0.5))"), 2);
  EXPECT_EQ(a_of("map(mul(a, E); E = 4 [extent])"), 1);
  EXPECT_EQ(a_of("map(div(a, E); E = 4 [extent])"), 1);
  EXPECT_EQ(a_of("map(div(mul(a, 3), -4))"), 1);
  EXPECT_EQ(a_of("map(exp(mul(a, b)))"), 1);
  EXPECT_EQ(a_of("map(exp(sub(a, b)))"), 2);
  EXPECT_EQ(a_of("map(exp(c); c = sub(a, b))"), 2);
  EXPECT_EQ(a_of("map(store(mul(a, b)))"), 2);
  EXPECT_EQ(a_of("map(larger(mul(a, b), c))"), 1);
}

TEST(DegreesOfMaps, ArgumentsOfFunctionsAreMet) {
  EXPECT_EQ(degree_of("map(exp(mul(mul(a, b), c)))").counts.degrees.rbegin()->a, 3);
  EXPECT_EQ(degree_of("map(mul(mul(a, b), exp(c)))").counts.degrees.rbegin()->a, 3);
  EXPECT_EQ(degree_of("map(exp(sub(a, mul(b, c))))").counts.degrees.rbegin()->a, 2);
  EXPECT_EQ(degree_of("map(mul(a, 1))").counts.applied.size(), 0U);
  EXPECT_EQ(degree_of("map(exp(a))").counts.applied.at("exp"), 6);
}

TEST(DegreesOfMaps, DivisorsAreCounted) {
  const Degree one = degree_of("map(div(a, mul(b, c)))");
  ASSERT_EQ(one.counts.divided.size(), 1U);
  const auto& [divisor, times] = *one.counts.divided.begin();
  EXPECT_EQ(divisor.second, (FieldDegree{.a = 2, .e = {}, .more = {}}));
  EXPECT_EQ(times, 6);
  EXPECT_EQ(one.degree, (FieldDegree{.a = 1, .e = {{divisor.first, 1}}, .more = {}}));
  // A quotient that divides: its denominators come into the numerator.
  const Degree two = degree_of("map(div(a, b))", "map(div(c, y))");
  ASSERT_EQ(two.counts.divided.size(), 2U);
  const int first = divisor.first, second = two.counts.divided.rbegin()->first.first;
  EXPECT_GT(second, first);
  EXPECT_EQ(two.counts.divided.rbegin()->first.second,
            (FieldDegree{.a = 1, .e = {{first, 1}}, .more = {}}));
  EXPECT_EQ(two.degree, (FieldDegree{.a = 1, .e = {{second, 1}}, .more = {{first, 1}}}));
}

}  // namespace
}  // namespace shardproof
