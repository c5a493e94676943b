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
  const StepForm form = *rc::gen::elementOf(step_forms());
  const DrawnStep step = draw_step(form);
  const auto field = field_of(7);
  const RunStep here(form, step, step.torus, true, put_elements(field));
  const RunStep alone(form, step, Torus(), false, put_elements(field));
  RC_LOG() << form.call << " on " << step.torus;
  Numerics numerics;
  numerics.regime = Regime::field;
  numerics.act = draw_int(0, 1) == 1 ? ActType::bf16 : ActType::f32;
  const Sharded sharded = here.result(numerics, field), whole = alone.result(numerics, field);
  std::size_t wrong = 0;
  each_held(sharded, [&](std::size_t place, std::size_t chip, std::size_t i) {
    const FieldElement& wanted = whole.field().values[0].at(place);
    wrong += sharded.field().values[chip][i] == wanted ? 0U : 1U;
  });
  RC_ASSERT(wrong == 0U);
}

}  // namespace
}  // namespace shardproof
