// Questions about the lines of a step, and changes of their calls.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "golden/diagnosis/detail/step.h"
#include "weights/model/registry.h"
#include "weights/text/rules.h"

namespace shardproof::diagnosis {
namespace {

/// Calls f with each call of an expression, the inner ones first.
template <class E, class F>
void each_call(E& e, F&& f) {
  for (auto& arg : e.args) each_call(arg, f);
  if (e.kind == Expression::Kind::call) f(e);
}

}  // namespace

const TextWeight* Step::weight(std::string_view name) const {
  for (const TextSection section : kTextSections)
    for (const TextWeight& w : graph_->lines().text().section(section).weights)
      if (w.name == name &&
          (section != TextSection::layer || graph_->model().sizes().has(w.guard, place_.layer)))
        return &w;
  return nullptr;
}

std::string Step::file(std::string_view name) const {
  const TextWeight& w = *weight(name);
  return w.from.empty() ? w.name : w.from;
}

std::string Step::weight_id(const TextWeight& w) const {
  const bool of_layer = weight_row(w.name, &graph_->model())->per_layer;
  return of_layer ? fmt::format("layer{}.{}", place_.layer, file(w.name)) : file(w.name);
}

const TextLine* Step::line(std::string_view name) const {
  for (const TextLine& line : lines_)
    if (line.name == name) return &line;
  return nullptr;
}

std::optional<std::string> Step::operand(const std::string& name) const {
  const bounds::TextLines& lines = graph_->lines();
  if (name != "in" && lines.line_of({place_.pass, place_.layer, name}) == nullptr)
    return std::nullopt;
  // Between the values of keys there are lines that no dump has.
  if (graph_->of_keys() && line(name) != nullptr) return std::nullopt;
  return lines.id_of_operand(place_, name);
}

std::optional<double> Step::number(const Expression& word) const {
  if (word.kind == Expression::Kind::call || line(word.text) != nullptr ||
      !graph_->lines().text().is_number(word.text))
    return std::nullopt;
  return graph_->model().sizes().number(word.text);
}

std::int64_t Step::extent(char letter) const {
  const PassPlan& pass = derivation_.pass(place_.pass);
  if (letter == 'B') return pass.batch();
  if (letter == 'L') return pass.L;
  if (letter == 'M') return pass.prefix.length + pass.cached + pass.L;
  return graph_->model().sizes().extents.at(letter);
}

std::vector<const TextWeight*> Step::weights(WeightKind kind) const {
  std::vector<const TextWeight*> all;
  for (const TextLine& line : lines_)
    for (const std::string& name : reads_of(graph_->lines().text(), line).now)
      if (const TextWeight* const w = weight(name))
        if (weight_row(w->name, &graph_->model())->kind == kind) all.push_back(w);
  return all;
}

bool Step::reads_positions() const {
  return calls([this](const Expression& e) {
    return std::any_of(e.args.begin(), e.args.end(), [this](const Expression& arg) {
      return arg.kind == Expression::Kind::name && graph_->positional(arg.text);
    });
  });
}

std::optional<double> Step::formula(std::string_view formula) const {
  std::optional<double> value;
  calls([&](const Expression& e) {
    for (const Expression& arg : e.args)
      if (const TextNumber* const n = graph_->lines().text().number(arg.text); number(arg) && n)
        if (n->formula && n->formula->to_string() == formula) value = number(arg);
    return false;
  });
  return value;
}

bool Step::calls(const std::function<bool(const Expression&)>& is) const {
  bool any = false;
  for (const TextLine& line : lines_)
    if (!graph_->positional(line.name))
      each_call(line.expression, [&](const Expression& e) { any = any || is(e); });
  return any;
}

bool Step::calls(ModelOp op) const {
  return calls([op](const Expression& e) { return e.op == op; });
}

Step::Formulas Step::changed(const std::function<bool(Expression&)>& to) const {
  Formulas all;
  for (const TextLine& line : lines_) {
    Expression e = line.expression;
    bool any = false;
    each_call(e, [&](Expression& call) { any = to(call) || any; });
    if (any && !graph_->positional(line.name)) all.emplace(line.name, std::move(e));
  }
  return all;
}

}  // namespace shardproof::diagnosis
