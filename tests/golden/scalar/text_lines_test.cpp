// Lines of a model's text as the walk over it computes them (oracle/graph), beside the steps of a
// program: the walk shares nothing with the engine.
#include "tests/golden/scalar/text_lines.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "engine/program/execute.h"
#include "engine/program/typing.h"
#include "oracle/graph/field_run.h"
#include "oracle/graph/run.h"
#include "tests/engine/run_program.h"
#include "tests/oracle/find_in.h"
#include "weights/text/flat.h"

namespace shardproof {
namespace {

constexpr std::int64_t kRows = 2, kPrompt = 5;

/// What both regimes' walks are asked.
struct Asked {
  ModelText text;
  TextSizes sizes = sizes_of(text);
  Passes passes = Passes(kRows, kPrompt, 2, 1);
  IntTensor ids = IntTensor({kRows, kPrompt});

  explicit Asked(bool ordered) : text(flat_text(text_of_lines(ordered))) {
    ids.data = {1, 3, 5, 0, 2, 6, 4, 1, 2, 3};
  }

  Shape shape_of(const std::string& letters) const {
    Shape shape;
    for (const char c : letters) shape.push_back(sizes.extents.at(c));
    return shape;
  }
};

std::string id_of(const std::string& weight) {
  return weight == "table" || weight == "rope_cos" ? weight : "layer0." + weight;
}

/// The exact regime.
class Floats {
 public:
  using Whole = Tensor;
  static constexpr bool kOrdered = true;

  Floats(const Asked& asked, NumberFormat act) {
    std::map<std::string, Tensor, std::less<>> weights;
    for (const TextSection section : kTextSections)
      for (const TextWeight& one : asked.text.section(section).weights)
        weights[id_of(one.name)] = weight(one.name, asked.shape_of(one.letters));
    values_ = oracle::graph::run(find_in(weights), {.text = asked.text,
                                                    .sizes = asked.sizes,
                                                    .act = act,
                                                    .prompt = asked.ids,
                                                    .passes = asked.passes})
                  .values;
    numerics.act = act;
  }

  static Tensor weight(const std::string& name, const Shape& shape) {
    Tensor t(shape);
    std::size_t n = std::hash<std::string>()(name) % 1000;
    for (float& v : t.data) v = static_cast<float>((n = n * 7919 % 1009)) / 400.0F - 1.2F;
    return t;
  }
  const Tensor* value(const std::string& id) const {
    const auto at = values_.find(id);
    return at == values_.end() ? nullptr : &at->second;
  }
  static Sharded put(const Tensor& t, const Layout& layout) { return shard(t, layout, Torus()); }
  static std::size_t differences(const Sharded& made, const Tensor& wanted) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < wanted.data.size(); ++i)
      wrong += std::memcmp(&made.f32()[0][i], &wanted.data[i], sizeof(float)) == 0 ? 0U : 1U;
    return wrong;
  }

  Numerics numerics = {};
  std::shared_ptr<const Field> field = nullptr;

 private:
  std::map<std::string, Tensor> values_;
};

class Elements {
 public:
  static constexpr bool kOrdered = false;
  using Whole = Array<FieldElement>;

  Elements(const Asked& asked, NumberFormat act) {
    const FieldSetting setting{.seed = 11};
    field = std::make_shared<const Field>(setting);
    numerics.regime = Regime::field;
    numerics.act = act;
    for (const auto& [id, t] : oracle::graph::run_in_field(
             {asked.text, asked.sizes, act, asked.ids, asked.passes, setting})) {
      Whole& whole = values_.emplace(id, Whole(t.shape)).first->second;
      for (std::size_t i = 0; i < t.data.size(); ++i)
        for (std::size_t lane = 0; lane < 3; ++lane)
          whole.data[i].lane[lane] = t.data[i].lane[lane];
    }
  }

  Whole weight(const std::string& name, const Shape& shape) const {
    const FieldFunction stream("weight " + id_of(name));
    Whole t(shape);
    for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = field->input(stream, i);
    return t;
  }
  const Whole* value(const std::string& id) const {
    const auto at = values_.find(id);
    return at == values_.end() ? nullptr : &at->second;
  }
  Sharded put(const Whole& t, const Layout& layout) const {
    return shard(t, layout, Torus(), field);
  }
  static std::size_t differences(const Sharded& made, const Whole& wanted) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < wanted.data.size(); ++i)
      wrong += made.field().values[0][i] == wanted.data[i] ? 0U : 1U;
    return wrong;
  }

  Numerics numerics = {};
  std::shared_ptr<const Field> field;

 private:
  std::map<std::string, Whole> values_;
};

/// Steps on the walk's own values.
template <class Regime>
class Beside {
 public:
  explicit Beside(NumberFormat act) : asked_(Regime::kOrdered), regime_(asked_, act) {}

  /// Returns how many elements of a line's value differ from the step's, in all passes.
  std::size_t differences(const LineAndStep& one, bool of_layer) const {
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < asked_.passes.size(); ++i)
      wrong += differences(asked_.passes.at(i), one, of_layer);
    return wrong;
  }

 private:
  std::string letters_of(const std::string& name) const {
    for (const TextSection section : kTextSections) {
      for (const TextLine& line : asked_.text.section(section).lines)
        if (line.name == name) return line.letters;
      for (const TextWeight& weight : asked_.text.section(section).weights)
        if (weight.name == name) return weight.letters;
    }
    return "";
  }

  static Sharded integers(const std::string& letters, const Shape& shape,
                          const std::vector<std::int64_t>& values) {
    IntTensor t(shape);
    for (std::size_t i = 0; i < values.size(); ++i)
      t.data[i] = static_cast<std::int32_t>(values[i]);
    return shard(t, Layout::parse(letters), Torus());
  }

  Sharded operand(const PassPlan& pass, const std::string& name) const {
    const std::int64_t start = pass.rows[0].start;
    std::vector<std::int64_t> slots, positions, ids;
    for (std::int64_t m = 0; m < start + pass.L; ++m) slots.push_back(m);
    for (std::int64_t b = 0; b < kRows; ++b)
      for (std::int64_t l = 0; l < pass.L; ++l) {
        positions.push_back(start + l);
        ids.push_back(asked_.ids.data[static_cast<std::size_t>(b * kPrompt + start + l)]);
      }
    if (name == "slot") return integers("M", {start + pass.L}, slots);
    if (name == "pos") return integers("BL", {kRows, pass.L}, positions);
    if (name == "ids") return integers("BL", {kRows, pass.L}, ids);
    const std::string letters = name == "in" ? "BLE" : name == "kc_old" ? "BMKQ" : letters_of(name);
    const Layout layout = Layout::parse(letters);
    if (name == "kc_old" && pass.previous.empty())
      return regime_.put(typename Regime::Whole(Shape{kRows, 0, 2, 4}), layout);
    const std::string of_pass = (name == "kc_old" ? pass.previous : pass.name) + ".";
    const std::string value = name == "in" ? "embed" : name == "kc_old" ? "kc" : name;
    for (const std::string& id : {of_pass + value, of_pass + "layer0." + value})
      if (const auto* known = regime_.value(id)) return regime_.put(*known, layout);
    return regime_.put(regime_.weight(name, asked_.shape_of(letters)), layout);
  }

  std::size_t differences(const PassPlan& pass, const LineAndStep& one, bool of_layer) const {
    const std::string name = one.line.substr(0, one.line.find(' '));
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
    execution.numerics = regime_.numerics;
    execution.field = regime_.field;
    const SharedValue made = execute(program, inputs, execution).at("y");
    const auto* wanted = regime_.value(pass.name + (of_layer ? ".layer0." : ".") + name);
    EXPECT_EQ(made->shape(), wanted->shape);
    return regime_.differences(*made, *wanted);
  }

  Asked asked_;
  Regime regime_;
};

template <class Regime>
void expect_equal() {
  for (const NumberFormat act : {NumberFormat::f32, NumberFormat::bf16}) {
    const Beside<Regime> beside(act);
    for (const bool of_layer : {false, true})
      for (const LineAndStep& one : of_layer ? layer_lines() : embedding_lines())
        EXPECT_EQ(beside.differences(one, of_layer), 0U) << one.line;
    if (!Regime::kOrdered) continue;
    for (const LineAndStep& one : ordered_lines())
      EXPECT_EQ(beside.differences(one, true), 0U) << one.line;
  }
}

TEST(TextLines, HaveTheBitsOfTheWalk) { expect_equal<Floats>(); }

TEST(TextLines, HaveTheElementsOfTheWalk) { expect_equal<Elements>(); }

TEST(TextLines, ThatAreOthersDiffer) {
  const Beside<Floats> floats(NumberFormat::bf16);
  const Beside<Elements> elements(NumberFormat::bf16);
  const LineAndStep others[] = {
      {"mu : BL", "map(div(sx, E); E = 9 [extent])"},
      {"norm : BLE",
       "map(add(mul(mul(d, div(1, sqrt(add(div(ss, E), eps)))), g), b); E = 8 "
       "[extent], eps = 1e-05)"},
      {"q : BLHQ", "einsum(BLE,EHQ->BLHQ; d, wq)"},
      {"qt : BLHQ", "turn(q, Q, half 2)"},
      {"qi : BLHQ", "turn(q, Q, half 4)"},
      {"raw_score : BLKGM", "einsum(BLKGQ,BMKQ->BLKGM; qs, kc)"},
      {"max : BLH", "max(score, M)"},
      {"max2 : BLH", "max(close, M)"},
      {"max2 : BLH", "max(close where see, M)"},
      {"mean2 : BLH", "mean(close where see, M)"},
      {"added : BLH", "sum(close, M)"},
      {"both : BLE", "einsum(BLHQ,EHQ->BLE + BLKQ,EKQ->BLE; rot, wq; k, wk)"},
      {"exp : BLHM", "map(exp(less); less = sub(score, max))"},
      {"denom : BLH", "sum(score, M)"},
      {"act : BLE", "map(gelu(norm))"},
      {"rest : BL", "map(div(div(ss, sx), exp(mu)))"}};
  for (const LineAndStep& one : others) {
    EXPECT_GT(floats.differences(one, true), 0U) << one.call;
    EXPECT_GT(elements.differences(one, true), 0U) << one.call;
  }
  const LineAndStep ordered[] = {{"most : BLE", "top(norm, E, 2)"},
                                 {"most : BLE", "top(d, E, 3)"},
                                 {"seen : BLHM", "top(close where see, H, 2)"}};
  for (const LineAndStep& one : ordered) EXPECT_GT(floats.differences(one, true), 0U) << one.call;
  // Names matter in the field alone.
  const LineAndStep names[] = {{"mu : BL", "map(div(sx, E); E = 8)"},
                               {"score : BLHM", "map(mul(rs, scale) where see; scale = 0.5)"},
                               {"score : BLHM", "map(mul(rs, size) where see; size = 0.5 [Q=4])"},
                               {"less : BLHM", "map(sub(score, max) where see)"},
                               {"exp : BLHM", "map(exp(less) where see)"},
                               {"twice : BLE", "map(mul(norm, 2))"},
                               {"shorter : BLE", "map(bf16(mul(norm, 0.30)))"}};
  for (const LineAndStep& one : names) {
    EXPECT_EQ(floats.differences(one, true), 0U) << one.call;
    EXPECT_EQ(elements.differences(one, true) > 0, one.line != "less : BLHM") << one.call;
  }
}

}  // namespace
}  // namespace shardproof
