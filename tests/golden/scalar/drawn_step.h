#pragma once

// One step of a model's text on operands that are drawn, on a torus and layouts that are drawn.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/program/execute.h"
#include "engine/program/typing.h"
#include "golden/scalar/ops.h"
#include "tests/engine/random_layout.h"
#include "tests/engine/run_program.h"

namespace shardproof {

/// A call, the letters of its operands in their order, and the letters that must not be sharded.
/// An operand "int BL" has integers, "where BL" is an indicator.
struct StepForm {
  std::string call;
  std::vector<std::string> operands;
  std::string whole = {};
};

/// An operand of the whole tensor.
struct WholeOperand {
  std::string letters;
  Shape shape;
  std::vector<float> numbers;
  std::vector<std::int32_t> integers;
  bool integer = false;
};

struct DrawnStep {
  Torus torus;
  std::map<char, Axes> axes;
  std::map<char, std::int64_t> extents;
  std::vector<WholeOperand> operands;

  Layout layout(const std::string& letters) const {
    std::vector<Layout::Dim> dims;
    for (const char letter : letters) dims.push_back({letter, axes.at(letter)});
    return Layout(std::move(dims), Axes());
  }
};

/// Draws extents that every layout divides. `most` bounds the integers of int32 operands.
inline DrawnStep draw_step(const StepForm& form, const Torus& torus) {
  DrawnStep step;
  step.torus = torus;
  std::string letters;
  for (const std::string& operand : form.operands)
    for (const char c :
         operand.substr(operand.find(' ') == std::string::npos ? 0 : operand.find(' ') + 1))
      if (letters.find(c) == std::string::npos) letters += c;
  std::string sharded;
  for (const char c : letters)
    if (form.whole.find(c) == std::string::npos) sharded += c;
  const auto bins = draw_bins(static_cast<int>(sharded.size()) + 1);
  for (const char c : letters) {
    const auto at = sharded.find(c);
    step.axes[c] = at == std::string::npos ? Axes() : bins[at + 1];
    step.extents[c] = step.torus.size(step.axes[c]) * draw_int(1, 2);
  }
  if (step.extents.contains('Q')) step.extents['Q'] *= 4;
  if (step.extents.contains('P')) step.extents['P'] = 5;
  std::minstd_rand random(static_cast<unsigned>(draw_int(1, 1 << 20)));
  for (const std::string& text : form.operands) {
    WholeOperand operand;
    operand.integer = text.starts_with("int ");
    const bool where = text.starts_with("where ");
    operand.letters = text.find(' ') == std::string::npos ? text : text.substr(text.find(' ') + 1);
    for (const char c : operand.letters) operand.shape.push_back(step.extents.at(c));
    const std::int64_t n = element_count(operand.shape);
    // Integers 0, 1, ... along the last dim: slots of a cache, rows of a table.
    for (std::int64_t i = 0; i < n; ++i)
      if (operand.integer)
        operand.integers.push_back(static_cast<std::int32_t>(i % operand.shape.back() % 5));
      else if (where)
        operand.numbers.push_back(i % operand.shape.back() % 3 == 1 ? 0.0F : 1.0F);
      else
        operand.numbers.push_back(static_cast<float>(static_cast<int>(random() % 2001) - 1000) /
                                  37.0F);
    step.operands.push_back(std::move(operand));
  }
  return step;
}

/// The step on a torus, with an all_reduce after it where its result is partial.
struct RunStep {
  Program program;
  std::map<std::string, SharedValue> inputs;

  /// `put(operand, layout)` makes the sharded operand.
  template <class Put>
  RunStep(const StepForm& form, const DrawnStep& step, const Torus& torus, bool sharded,
          Put&& put) {
    program =
        parse_program("layer", fmt::format("y : B = {} is {}", form.call,
                                           form.call.starts_with("append") ? "k_cache" : "in"));
    Op& op = program.ops[0];
    std::vector<Type> types;
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      Layout layout = step.layout(step.operands[i].letters);
      if (!sharded)
        for (std::size_t d = 0; d < layout.rank(); ++d) layout = layout.with_axes(d, Axes());
      inputs[op.args.at(i)] = put(step.operands[i], layout, torus);
      types.push_back(inputs[op.args[i]]->type());
    }
    Type made = infer(op, types, torus).at(0);
    op.results[0].layout = made.layout;
    program.outputs = {"y"};
    if (!made.layout.is_partial()) return;
    Op reduce;
    reduce.kind = OpKind::all_reduce;
    reduce.args = {"y"};
    reduce.axes = made.layout.partial();
    reduce.by_max = made.layout.is_partial_max();
    reduce.results = op.results;
    reduce.results[0].name = "z";
    reduce.results[0].layout = made.layout.with_partial(Axes());
    program.ops.push_back(reduce);
    program.outputs = {"z"};
  }

  Sharded result(const Numerics& numerics, std::shared_ptr<const Field> field = nullptr) const {
    Threads threads(1);
    Execution execution = any_execution(threads);
    execution.numerics = numerics;
    execution.field = std::move(field);
    return *execute(program, inputs, execution).at(program.outputs[0]);
  }
};

/// Calls visit(number of the element in the whole tensor, chip, its number on the chip).
template <class Visit>
void each_held(const Sharded& value, Visit&& visit) {
  const Shape &local = value.local(), &shape = value.shape();
  for (int chip = 0; chip < value.torus().chips(); ++chip)
    for (std::int64_t i = 0; i < element_count(local); ++i) {
      std::int64_t rest = i, place = 0, step = 1;
      for (std::size_t d = local.size(); d-- > 0; rest /= local[d]) {
        const std::int64_t block = value.torus().block(chip, value.layout().dims()[d].axes);
        place += (rest % local[d] + local[d] * block) * step;
        step *= shape[d];
      }
      visit(static_cast<std::size_t>(place), static_cast<std::size_t>(chip),
            static_cast<std::size_t>(i));
    }
}

}  // namespace shardproof
