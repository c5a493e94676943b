// The steps of model texts in the field regime: on chips they have the elements that one chip alone
// has, and those of the walk over the text (oracle/graph), which shares nothing with them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "oracle/graph/field_run.h"
#include "tests/golden/scalar/drawn_step.h"
#include "tests/golden/scalar/text_lines.h"
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

/// The lines of the text as the walk computes them, and as their steps do.
class LinesInTheField {
 public:
  explicit LinesInTheField(ActType act) : text_(text_of_lines()), sizes_(sizes_of(text_)) {
    setting_.seed = 11;
    field_ = std::make_shared<const Field>(setting_);
    numerics_.regime = Regime::field;
    numerics_.act = act;
    IntTensor ids({2, 5});
    ids.data = {1, 3, 5, 0, 2, 6, 4, 1, 2, 3};
    passes_ = Passes(2, 5, 2, 1);
    values_ = oracle::graph::run_in_field({text_, sizes_, act, ids, passes_, setting_});
    ids_ = ids;
  }

  void expect_equal() {
    for (std::int64_t i = 0; i < passes_.size(); ++i) {
      const PassPlan pass = passes_.at(i);
      for (const LineAndStep& one : embedding_lines()) expect_equal(pass, one, "");
      for (const LineAndStep& one : layer_lines()) expect_equal(pass, one, "layer0.");
    }
  }

 private:
  static std::string name_of(const std::string& line) { return line.substr(0, line.find(' ')); }

  Sharded whole(const std::string& letters, const Array<FieldElement>& t) const {
    return shard(t, Layout::parse(letters), Torus(), field_);
  }

  /// A named value of the walk in a pass.
  std::optional<Sharded> known(const PassPlan& pass, const std::string& name,
                               const std::string& letters) const {
    for (const std::string& place : {pass.name + "." + name, pass.name + ".layer0." + name})
      if (const auto at = values_.find(place); at != values_.end()) {
        Array<FieldElement> t(at->second.shape);
        for (std::size_t i = 0; i < t.data.size(); ++i)
          for (std::size_t lane = 0; lane < 3; ++lane)
            t.data[i].lane[lane] = at->second.data[i].lane[lane];
        return whole(letters, t);
      }
    return std::nullopt;
  }

  std::string letters_of(const std::string& name) const {
    for (const TextSection section : kTextSections) {
      for (const TextLine& line : text_.section(section).lines)
        if (line.name == name) return line.letters;
      for (const TextWeight& weight : text_.section(section).weights)
        if (weight.name == name) return weight.letters;
    }
    return "";
  }

  Sharded operand(const PassPlan& pass, const std::string& name) const {
    const std::int64_t start = pass.rows[0].start, B = 2;
    if (name == "in") return *known(pass, "embed", "BLE");
    if (name == "pos" || name == "ids" || name == "slot") {
      const bool slots = name == "slot";
      IntTensor t(slots ? Shape{start + pass.L} : Shape{B, pass.L});
      for (std::int64_t i = 0; i < std::ssize(t.data); ++i) {
        const std::int64_t at = start + i % pass.L;
        t.data[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(
            slots           ? i
            : name == "pos" ? at
                            : ids_.data[static_cast<std::size_t>(i / pass.L * 5 + at)]);
      }
      return shard(t, Layout::parse(slots ? "M" : "BL"), Torus());
    }
    if (name == "kc_old") {
      if (pass.previous.empty()) return whole("BMKQ", Array<FieldElement>(Shape{B, 0, 2, 4}));
      PassPlan before = pass;
      before.name = pass.previous;
      return *known(before, "kc", "BMKQ");
    }
    const std::string letters = letters_of(name);
    if (auto value = known(pass, name, letters)) return std::move(*value);
    Shape shape;
    for (const char c : letters) shape.push_back(sizes_.extents.at(c));
    const bool embedding = name == "table" || name == "rope_cos";
    const FieldFunction stream("weight " + std::string(embedding ? "" : "layer0.") + name);
    Array<FieldElement> t(shape);
    for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = field_->input(stream, i);
    return whole(letters, t);
  }

  void expect_equal(const PassPlan& pass, const LineAndStep& one, const std::string& layer) {
    SCOPED_TRACE(pass.name + ": " + one.line);
    const std::string name = name_of(one.line);
    Program program = parse_program("layer", "y : B = " + one.call + " is in\noutput y");
    Op& op = program.ops[0];
    std::map<std::string, SharedValue> inputs;
    std::vector<Type> types;
    for (const std::string& arg : op.args) {
      inputs[arg] = shared(operand(pass, arg));
      types.push_back(inputs[arg]->type());
    }
    op.results[0].layout = infer(op, types, Torus()).at(0).layout;
    EXPECT_EQ(op.results[0].layout.letters(), letters_of(name));
    Threads threads(1);
    Execution execution = any_execution(threads);
    execution.numerics = numerics_;
    execution.field = field_;
    const SharedValue made = execute(program, inputs, execution).at("y");
    const auto& wanted = values_.at(pass.name + "." + layer + name);
    ASSERT_EQ(made->shape(), wanted.shape);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < wanted.data.size(); ++i)
      for (std::size_t lane = 0; lane < 3; ++lane)
        wrong += made->field().values[0][i].lane[lane] == wanted.data[i].lane[lane] ? 0U : 1U;
    EXPECT_EQ(wrong, 0U);
  }

  ModelText text_;
  TextSizes sizes_;
  FieldSetting setting_;
  std::shared_ptr<const Field> field_;
  Numerics numerics_;
  IntTensor ids_;
  Passes passes_;
  std::map<std::string, oracle::field::Tensor> values_;
};

TEST(TextLinesInTheField, HaveTheElementsOfTheWalk) {
  for (const ActType act : {ActType::f32, ActType::bf16}) LinesInTheField(act).expect_equal();
}

}  // namespace
}  // namespace shardproof
