// Edits of the graph: other weights, numbers, functions and operands of the value's step.
#include "golden/diagnosis/detail/edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/orders.h"
#include "golden/diagnosis/detail/trial.h"
#include "weights/base/detail/index.h"

namespace shardproof::diagnosis {
namespace {

using bounds::IntervalTensor;

template <class F>
Tensor each(Tensor t, F&& f) {
  for (float& v : t.data) v = f(v);
  return t;
}

/// The operand of a function of one operand, and that of the product with it.
struct Activation {
  std::string inner, other;  ///< ids; "" if there is none
};

/// Returns the first operand that an expression is made of, through the lines of the step; "" if
/// there is none.
std::string first_operand(const Question& q, const Expression& e) {
  if (e.kind == Expression::Kind::name) {
    const std::optional<std::string> id = q.step().operand(e.text);
    if (id && std::count(q.operands().begin(), q.operands().end(), *id) > 0) return *id;
    const TextLine* const line = q.step().line(e.text);
    return line == nullptr ? "" : first_operand(q, line->expression);
  }
  if (e.op == ModelOp::before) return "";  // of the line itself
  for (const Expression& arg : e.args)
    if (std::string id = first_operand(q, arg); !id.empty()) return id;
  return "";
}

Activation activation_of(const Question& q) {
  Activation a;
  q.step().calls([&](const Expression& e) {
    if (is_activation(e.op) && a.inner.empty()) a.inner = first_operand(q, e.args[0]);
    return false;
  });
  for (const std::string& id : q.operands())
    if (id != a.inner) a.other = id;
  return a;
}

std::string last_of(const std::string& id) { return id.substr(id.rfind('.') + 1); }

/// Replaces a call by one of its operands.
void replace(Expression& call, std::size_t by) {
  Expression operand = std::move(call.args[by]);
  call = std::move(operand);
}

/// Replaces a product with an operand by its other factor.
bool drop_factor(Expression& e, const std::string& id, const Step& step) {
  if (e.op != ModelOp::mul) return false;
  for (const std::size_t i : {0U, 1U})
    if (e.args[i].kind == Expression::Kind::name && step.operand(e.args[i].text) == id) {
      replace(e, 1 - i);
      return true;
    }
  return false;
}

}  // namespace

bool has_gate(const Question& q) {
  if (q.operands().size() != 2) return false;
  const Activation a = activation_of(q);
  return !a.inner.empty() && q.value(a.inner).shape == q.value(a.other).shape &&
         q.value(a.inner).shape == q.shape();
}

bool is_activation(ModelOp op) {
  return op == ModelOp::silu || op == ModelOp::gelu || op == ModelOp::gelu_tanh ||
         op == ModelOp::relu;
}

Edit weights_as(WeightKind kind, float (*to)(float)) {
  return [=](const Question& q, Search& search, const Row& row) {
    for (const TextWeight* const weight : q.step().weights(kind)) {
      const std::string id = q.step().weight_id(*weight);
      Trial(q, search).try_change(candidate(row, id), {.weights = {{id, each(*q.weight(id), to)}}});
    }
  };
}

Edit weights_of_chips(WeightKind kind) {
  return [=](const Question& q, Search& search, const Row& row) {
    for (const TextWeight* const weight : q.step().weights(kind))
      for (const Axes& set : q.sets()) {
        const std::string id = q.step().weight_id(*weight);
        const auto n = static_cast<float>(q.torus().size(set));
        Candidate c = candidate(row, id, n);
        c.axes = set.to_string();
        Trial(q, search).try_change(
            std::move(c), {.weights = {{id, each(*q.weight(id), [n](float v) { return n * v; })}}});
      }
  };
}

Edit other_weights(WeightKind kind) {
  return [=](const Question& q, Search& search, const Row& row) {
    for (const TextWeight* const weight : q.step().weights(kind)) {
      const std::string id = q.step().weight_id(*weight);
      for (const WeightRow& other : q.step().graph().model().weights())
        for (std::int64_t layer = 0; layer < (other.per_layer ? q.config().layers : 1); ++layer) {
          const std::string of = other.per_layer ? fmt::format("layer{}.{}", layer, other.file)
                                                 : std::string(other.file);
          const Weights& weights = q.replay().weights();
          if (other.kind == kind && of != id && weights.contains(of) &&
              weights.shape(of) == weights.shape(id))
            Trial(q, search).try_change(candidate(row, of, id), {.weights = {{id, *q.weight(of)}}});
        }
    }
  };
}

Edit blocks_of_weights(WeightKind kind) {
  return [=](const Question& q, Search& search, const Row&) {
    for (const TextWeight* const weight : q.step().weights(kind)) {
      const std::string id = q.step().weight_id(*weight);
      if (weight->letters.size() != 1) continue;
      const std::shared_ptr<const Tensor> values = q.weight(id);
      const Tensor& own = *values;
      each_exchange(q, weight->letters[0], own.shape[0], [&](Candidate c, const auto& held) {
        Tensor other = own;
        const std::vector<std::size_t> from =
            reordered(own.data.size(), own.shape[0] / std::ssize(held), held);
        for (std::size_t i = 0; i < from.size(); ++i) other.data[i] = own.data[from[i]];
        c.detail = fmt::format("{} of {}: {}", weight->letters, id, c.detail);
        Trial(q, search).try_change(std::move(c), {.weights = {{id, other}}});
      });
    }
  };
}

Edit numbers_as(Part part, double (*to)(double, const Question&)) {
  return [=](const Question& q, Search& search, const Row& row) {
    std::vector<std::string> names;
    q.step().calls([&](const Expression& e) {
      if (e.op != (part == Part::factor ? ModelOp::mul : ModelOp::add)) return false;
      for (const Expression& arg : e.args)
        if (q.step().number(arg) && q.step().graph().lines().text().number(arg.text) != nullptr)
          names.push_back(arg.text);
      return false;
    });
    const std::shared_ptr<const Contraction> c = contraction_of(q);
    for (const std::string& name : names) {
      // A number that is called by what it is made of.
      std::string words = name;
      if (const auto& formula = q.step().graph().lines().text().number(name)->formula) {
        words = formula->to_string();
        std::erase(words, ' ');
      }
      const double number = to(q.step().graph().model().sizes().number(name), q);
      if (c == nullptr) {
        Trial(q, search).try_change(candidate(row, words), {.numbers = {{name, number}}});
        continue;
      }
      Contraction other = *c;
      other.scales.assign(other.columns, number);
      Trial(q, search).try_sum(candidate(row, words), std::move(other));
    }
  };
}

Edit calls_as(bool (*to)(Expression&, const Step&)) {
  return [=](const Question& q, Search& search, const Row& row) {
    Trial(q, search).try_change(
        candidate(row),
        {.formulas = q.step().changed([&](Expression& e) { return to(e, q.step()); })});
  };
}

Edit times_a(std::optional<double> (*factor)(const Question&)) {
  return [=](const Question& q, Search& search, const Row& row) {
    if (const std::optional<double> by = factor(q))
      Trial(q, search).try_value(
          candidate(row), rounded_or_not(scaled(q.expected(), *by, q.declared()), q.declared()));
  };
}

Edit operand_times(std::optional<double> (*factor)(const Question&)) {
  return [=](const Question& q, Search& search, const Row& row) {
    const std::string id = q.operands()[0];
    if (const std::optional<double> by = factor(q))
      Trial(q, search).try_change(candidate(row),
                                  {.values = {{id, scaled(q.value(id), *by, q.declared())}}});
  };
}

Edit factors_swapped() {
  return [](const Question& q, Search& search, const Row& row) {
    const Activation a = activation_of(q);
    Trial(q, search).try_change(
        candidate(row, q.name(), last_of(a.other), last_of(a.inner)),
        {.values = {{a.inner, q.value(a.other)}, {a.other, q.value(a.inner)}}});
  };
}

Edit factor_dropped(bool the_activated) {
  return [=](const Question& q, Search& search, const Row& row) {
    const Activation a = activation_of(q);
    Step::Change change{.formulas = q.step().changed(
                            [&](Expression& e) { return drop_factor(e, a.other, q.step()); })};
    if (the_activated) change.values.emplace_back(a.inner, q.value(a.other));
    Trial(q, search).try_change(
        candidate(row, last_of(the_activated ? a.inner : a.other), q.name(), last_of(a.other)),
        change);
  };
}

Edit factor_alone(bool the_activated) {
  return [=](const Question& q, Search& search, const Row& row) {
    const Activation a = activation_of(q);
    const std::string& id = the_activated ? a.inner : a.other;
    Trial(q, search).try_value(candidate(row, q.name(), last_of(id)), q.value(id));
  };
}

Edit mean_subtracted() {
  return [](const Question& q, Search& search, const Row& row) {
    const std::string operand = q.operands()[0];
    const IntervalTensor& x = q.value(operand);
    IntervalTensor y = x;
    const std::size_t E = at(x.shape.back());
    const bounds::Operations by(q.declared());
    for (std::size_t begin = 0; begin < x.size(); begin += E) {
      bounds::IntervalSum sum;
      for (std::size_t e = begin; e < begin + E; ++e) sum.add(x.number(e), {1.0, 0.0, 0.0});
      const bounds::Number mean =
          by.over(sum.value(q.declared()), {static_cast<double>(E), 0.0, 0.0});
      for (std::size_t e = begin; e < begin + E; ++e) y.set(e, by.minus(x.number(e), mean));
    }
    Trial(q, search).try_change(candidate(row), {.values = {{operand, std::move(y)}}});
  };
}

Edit scales_as(double (*to)(double own, double first, const Question&), bool biases_too) {
  return [=](const Question& q, Search& search, const Row& row) {
    const Contraction c = *contraction_of(q);
    Contraction other = c;
    other.scales.resize(c.columns, 1.0);
    for (std::size_t i = 0; i < other.columns; ++i)
      other.scales[i] = c.scales.empty() ? to(1, 1, q) : to(c.scales[i], c.scales[0], q);
    for (Contraction::Bias& bias : other.biases)
      for (std::size_t i = 0; i < other.columns && biases_too; ++i)
        bias.values[i] *= other.scales[i];
    Candidate tried = candidate(row, c.scale);
    tried.at = q.logical([&q, other = std::move(other)](std::size_t g) {
      bounds::FunctionValue v = other.at(g, q.declared());
      // Scaling a bias rounds, too.
      v.radius += (0x1p-50 + 2 * q.declared().operations.unit) * std::abs(v.center);
      return v;
    });
    search.consider(std::move(tried));
  };
}

Edit means_of_chips() {
  return [](const Question& q, Search& search, const Row& row) {
    for (const Axes& set : q.sets()) {
      const int n = q.torus().size(set);
      Candidate c = candidate(row, words_of(set), n);
      c.parameters = 10 * set.size();
      c.axes = set.to_string();
      Trial(q, search).try_value(
          std::move(c), rounded_or_not(scaled(q.expected(), 1.0 / n, q.declared()), q.declared()));
    }
  };
}

Edit slopes_of_first_heads() {
  return [](const Question& q, Search& search, const Row& row) {
    for (const TextWeight* const weight : q.step().weights(WeightKind::slopes))
      for (const Axes& set : q.sets()) {
        const std::string id = q.step().weight_id(*weight);
        Tensor slopes = *q.weight(id);
        const std::size_t n = at(q.torus().size(set)), own = slopes.data.size() / n;
        if (own * n != slopes.data.size()) continue;
        for (std::size_t h = own; h < slopes.data.size(); ++h)
          slopes.data[h] = slopes.data[h % own];
        Candidate c = candidate(row, id, n);
        c.axes = set.to_string();
        Trial(q, search).try_change(std::move(c), {.weights = {{id, std::move(slopes)}}});
      }
  };
}

Edit operand_blocks() {
  return [](const Question& q, Search& search, const Row& row) {
    for (const std::string& id : q.operands())
      for (const Axes& set : q.sets())
        for (std::size_t d = 0; d < q.rank(); ++d) {
          const IntervalTensor& right = q.value(id);
          const std::int64_t n = q.torus().size(set), extent = q.shape()[d], w = extent / n;
          if (right.shape != q.shape() || w * n != extent) continue;
          const std::size_t inner = inner_of(q.shape(), d);
          for (std::int64_t block = 0; block < n; ++block) {
            IntervalTensor moved = right;
            for (std::size_t i = 0; i < moved.size(); ++i) {
              const std::int64_t own = static_cast<std::int64_t>(i / inner) % extent;
              const std::int64_t from = own % w + block * w;
              moved.set(i, right.number(i - at(own) * inner + at(from) * inner));
            }
            Candidate c = candidate(row, last_of(id), fmt::format("block {} of {}", block, n),
                                    q.layout().dims()[d].letter);
            c.axes = set.to_string();
            Trial(q, search).try_change(std::move(c), {.values = {{id, std::move(moved)}}});
          }
        }
  };
}

}  // namespace shardproof::diagnosis
