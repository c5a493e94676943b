// Faults of constant scales and gains: missing, doubled, or in another base.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "golden/diagnosis/detail/families.h"
#include "golden/diagnosis/detail/what_if.h"
#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof::diagnosis {
namespace {

template <class F>
Tensor changed(Tensor t, F&& f) {
  for (float& v : t.data) v = f(v);
  return t;
}

class Scales : Family {
 public:
  Scales(const Question& q, Search& search)
      : Family(q, search),
        base2_(q.config().softmax == Softmax::base2),
        to_other_base_(base2_ ? kLn2 : kLog2E) {}

  void run() {
    const std::string& n = q_.name();
    if (n == "norm" || n == "norm2" || n == "final_norm") norm();
    if (n == "embed") embed();
    if (n == "logits") logits();
    if (n == "score") score();
    if (n == "exp") exponentials();
    if (n == "attn") mean();
    if (n != "embed" && n != "logits") int8();
    if (contraction_of(q_)) sums_as_means();
  }

 private:
  void try_times(Candidate candidate, double factor) {
    try_value(std::move(candidate), scaled(q_.expected(), factor, q_.declared()));
  }
  /// Tries a weight with its numbers changed.
  template <class F>
  void try_with(Candidate candidate, const std::string& weight, F&& f) {
    try_weights(std::move(candidate), {{weight, changed(*q_.weight(weight), f)}});
  }

  void norm() {
    const std::string gain = q_.weight_id(q_.name()), bias = gain + "_bias";
    const auto one = [](float) { return 1.0F; };
    if (folded()) try_with({"convention", "declare norm_gain=folded"}, gain, one);
    try_with({"scale missing", "the gain"}, gain, one);
    try_with({"scale doubled", "the gain"}, gain, [](float v) { return v * v; });
    try_with({"scale missing", "1 is added to the gain", 5}, gain,
             [](float v) { return v + 1.0F; });
    const char* const addend = "addend not added once";
    if (q_.weight(bias) != nullptr) {
      try_with({addend, bias + " is left out", 1}, bias, [](float) { return 0.0F; });
      try_with({addend, bias + " is added twice", 2}, bias, [](float v) { return 2 * v; });
      for (const Axes& set : q_.sets()) {
        const auto n = static_cast<float>(q_.torus().size(set));
        try_with({addend, fmt::format("{} is added {} times", bias, n), 3, set.to_string()}, bias,
                 [n](float v) { return n * v; });
      }
    }
    for (const auto& [other, values] : q_.replay().weights().all())
      if (other != gain && values.shape == q_.weight(gain)->shape &&
          (other.ends_with("norm") || other.ends_with("norm2")))
        try_weights({"another layer's weight", fmt::format("{} in place of {}", other, gain)},
                    {{gain, values}});
    try_change({addend, "eps is left out", 5}, {.numbers = {{"eps", 0.0}}});
    const ModelConfig& model = q_.config();
    if (base2_ && model.tied)
      try_change({"scale missing", "eps is not scaled by c·c", 5}, {.numbers = {{"eps", model.eps}}});
    other_mean();
    // The root of the sum in place of the root of the mean.
    if (q_.weight(bias) == nullptr) {
      const double E = static_cast<double>(model.E), eps = eps_of_norms(model);
      try {
        try_value({"scale missing", "the sum of squares is not divided by E", 6},
                  scaled(q_.under({.numbers = {{"eps", eps / E}}}), 1 / std::sqrt(E),
                         q_.declared()));
      } catch (const Error& e) {
        if (e.label() != "bounds_c1") throw;
      }
    }
  }

  /// A mean that is subtracted where the model subtracts none, or the other way round.
  void other_mean() {
    const std::string operand = q_.operands()[0];
    const bool centered = q_.config().norm == Norm::layernorm;
    Step::Change change;
    if (centered) {
      for (const TextLine& line : q_.step().lines())
        if (line.name == statistic_row(q_.name(), "mu").name)
          change.formulas[line.name] = parse_expression(
              fmt::format("mul({}, 0)", line.expression.args[0].text));
    } else {
      change.values.emplace_back(operand, without_mean(q_.value(operand)));
    }
    try_change({"local statistics",
                centered ? "the mean is not subtracted" : "the mean is subtracted", 5},
               change);
  }

  bounds::IntervalTensor without_mean(const bounds::IntervalTensor& x) const {
    bounds::IntervalTensor y = x;
    const std::size_t E = at(x.shape.back());
    const bounds::Operations by(q_.declared());
    for (std::size_t row = 0; row < x.size() / E; ++row) {
      bounds::IntervalSum sum;
      for (std::size_t e = 0; e < E; ++e) sum.add(x.number(row * E + e), {1.0, 0.0, 0.0});
      const bounds::Number mean =
          by.over(sum.value(q_.declared()), {static_cast<double>(E), 0.0, 0.0});
      for (std::size_t e = 0; e < E; ++e)
        y.set(row * E + e, by.minus(x.number(row * E + e), mean));
    }
    return y;
  }

  /// Returns a dumped norm with its gain put back.
  bounds::IntervalTensor with_gain(const std::string& norm) const {
    const bounds::Derivation::Place place = q_.replay().place_of(norm);
    const Tensor& g = *q_.weight(shardproof::weight_id(place.layer, place.name));
    bounds::IntervalTensor with = q_.replay().value(norm);
    const std::size_t E = g.data.size();
    for (std::size_t i = 0; i < with.size(); ++i) {
      with.center[i] *= static_cast<double>(g.data[i % E]);
      with.radius[i] =
          (2 * q_.declared().operations.unit + bounds::unit_of(q_.format()) + 0x1p-53) *
          std::abs(with.center[i]);
    }
    return with;
  }

  /// Returns whether all norms of the pass are right with gain: writers fold all or none.
  bool all_folded() const {
    for (std::int64_t layer = 0; layer < q_.config().layers; ++layer)
      for (const char* name : {"norm", "norm2", "final_norm"}) {
        const std::string norm = checkpoint_id(q_.place().pass, layer, name);
        if (!q_.replay().dumped(norm)) continue;
        const bounds::IntervalTensor with = with_gain(norm), right = q_.replay().expected(norm);
        const std::vector<bool> unspoken = q_.unspoken(q_.replay().place_of(norm), with.shape);
        for (std::size_t i = 0; i < with.size(); ++i)
          if ((unspoken.empty() || !unspoken[i]) &&
              !(std::abs(with.center[i] - right.center[i]) <= with.radius[i] + right.radius[i]))
            return false;
      }
    return true;
  }

  /// Returns whether the values that follow from the norm are right with the gain put back.
  bool folded() const {
    if (!q_.replay().dumped(q_.id()) || !all_folded()) return false;
    const bounds::IntervalTensor with = with_gain(q_.id());
    const bool serial = q_.config().block == Block::serial;
    std::vector<std::string> made{"q", "k", "v", serial ? "" : "gate", serial ? "" : "up"};
    if (q_.name() == "norm2") made = {"gate", "up"};
    if (q_.name() == "final_norm") made = {"logits"};
    bool any = false;
    for (const std::string& name : made) {
      if (name.empty() || !q_.replay().dumped(id(name))) continue;
      if (!follows(q_, id(name), {{q_.id(), with}})) return false;
      any = true;
    }
    return any;
  }

  void embed() {
    const ModelConfig& model = q_.config();
    const auto scale = static_cast<double>(model.embed_scale);
    if (scale == 1.0)
      return try_times({"scale doubled", "the root of E, which this model has not", 2},
                       std::sqrt(static_cast<double>(model.E)));
    try_change({"scale missing", "embed_scale"}, {.numbers = {{"embed_scale", 1.0}}});
    try_times({"scale doubled", "embed_scale"}, scale);
  }

  void logits() {
    const Contraction c = *contraction_of(q_);
    const double scale = c.scales.empty() ? 1.0 : c.scales[0];
    const auto with = [&](Candidate candidate, double to, double of_biases) {
      Contraction other = c;
      other.scales.assign(other.columns, to);
      for (auto& bias : other.biases)
        for (double& b : bias.values) b *= of_biases;
      candidate.at = q_.logical([&q = q_, other = std::move(other)](std::size_t g) {
        bounds::FunctionValue v = other.at(g, q.declared());
        // Scaling a bias rounds, too.
        const double size = std::abs(v.center);
        v.radius = v.radius + 0x1p-50 * size + 2 * q.declared().operations.unit * size;
        return v;
      });
      search_.consider(std::move(candidate));
    };
    with({"convention", fmt::format("declare logits_base={}", other_base())},
         scale * to_other_base_, to_other_base_);
    if (base2_)
      return with({"scale doubled", "logit_scale, which the weights have"},
                  static_cast<double>(q_.config().logit_scale), 1.0);
    with({"scale missing", "logit_scale"}, 1.0, 1.0);
    with({"scale doubled", "logit_scale"}, scale * scale, 1.0);
    with({"scale missing", "logit_scale, and the bias is scaled by it"}, scale, scale);
  }

  const char* other_base() const { return base2_ ? "e" : "2"; }

  /// Returns whether the dump's scores are in units of the base that the model does not use.
  bool scores_of_other_base() const {
    return q_.replay().dumped(id("score")) &&
           holds(q_, id("score"),
                 scaled(q_.replay().expected(id("score")), to_other_base_, q_.declared()));
  }

  void score() {
    const double root = std::sqrt(static_cast<double>(q_.config().Q));
    // A convention only if the exponentials are right in those units.
    if (follows_in_other_units())
      try_times({"convention", fmt::format("declare score_base={}", other_base())}, to_other_base_);
    if (base2_)
      try_times({"scale missing", "log2(e), but the exponentials are of base 2", 5}, kLn2);
    else
      try_times({"scale doubled", "log2(e), but the exponentials are of base e", 5}, kLog2E);
    if (q_.config().rope == Rope::alibi) {
      const auto term = [&](const char* words, int parameters, auto f) {
        try_with({"addend not added once", std::string("the ALiBi term is ") + words, parameters},
                 "alibi_slopes", f);
      };
      term("left out", 1, [](float) { return 0.0F; });
      term("added twice", 2, [](float v) { return 2 * v; });
      term("subtracted", 3, [](float v) { return -v; });
      // The scale applies to the product alone, not to the ALiBi term.
      const auto of_product = [&](std::string_view fault, double factor) {
        const std::string operand = q_.operands()[0];
        try_change({fault, "1/sqrt(Q)"},
                   {.values = {{operand, scaled(q_.value(operand), factor, q_.declared())}}});
      };
      if (!base2_) of_product("scale missing", root);
      of_product("scale doubled", 1 / root);
    }
    // In base 2 wq has the scale, and its absence shows in q.
    if (!base2_) try_times({"scale missing", "1/sqrt(Q)"}, root);
    try_times({"scale doubled", "1/sqrt(Q)"}, 1 / root);
    if (!base2_)
      try_times({"scale doubled", "1/sqrt(E) in place of 1/sqrt(Q)", 9},
                root / std::sqrt(static_cast<double>(q_.config().E)));
  }

  /// Returns whether the first dumped value of exp, denom, attn follows from the scores and maxima
  /// in the other units.
  bool follows_in_other_units() const {
    if (!q_.replay().dumped(id("score"))) return false;
    std::vector<std::pair<std::string, bounds::IntervalTensor>> values{in_units("score", back())};
    if (q_.replay().dumped(id("max"))) values.push_back(in_units("max", back()));
    for (const char* made : {"exp", "denom", "attn"})
      if (q_.replay().dumped(id(made))) return follows(q_, id(made), values);
    return false;
  }

  /// Returns a value by id, times a factor.
  std::pair<std::string, bounds::IntervalTensor> in_units(std::string_view name,
                                                          double factor) const {
    return {id(name), scaled(q_.value(id(name)), factor, q_.declared())};
  }

  void exponentials() {
    const auto base = [&](Candidate candidate, double factor) {
      try_change(std::move(candidate),
                 {.values = {in_units("score", factor), in_units("max", factor)}});
    };
    if (scores_of_other_base())
      base({"convention", fmt::format("declare score_base={}", other_base())}, back());
    if (base2_)
      base({"scale doubled", "log2(e): e^x in place of 2^x", 1}, kLog2E);
    else
      base({"scale missing", "log2(e): 2^x in place of e^x", 1}, 1 / kLog2E);
    try_change({"addend not added once", "the maximum is not subtracted", 1},
               {.values = {{id("max"), bounds::IntervalTensor(q_.value(id("max")).shape)}}});
  }

  void mean() {
    const bounds::IntervalTensor& Z = q_.value(id("denom"));
    const auto Q = at(q_.config().Q);
    bounds::IntervalTensor missing = q_.expected(), doubled = missing;
    const double unit = 2 * (q_.declared().operations.unit + 0x1p-53);
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const double z = Z.center[i / Q], more = Z.radius[i / Q] / z + unit;
      const auto change = [&](bounds::IntervalTensor& y, auto by) {
        y.center[i] = by(y.center[i]);
        y.radius[i] = by(y.radius[i]) + more * std::abs(y.center[i]);
      };
      change(missing, [z](double v) { return v * z; });
      change(doubled, [z](double v) { return v / z; });
    }
    try_value({"scale missing", "not divided by the denominator"}, std::move(missing));
    try_value({"scale doubled", "divided by the denominator"}, std::move(doubled));
  }

  void int8() {
    const std::optional<Contraction> c = contraction_of(q_);
    if (!c || c->scales.empty()) return;
    const std::string name(scale_of(q_.config(), c->terms[0].matrix)->name);
    const auto with = [&](Candidate candidate, auto to) {
      Contraction other = *c;
      for (std::size_t i = 0; i < other.columns; ++i) other.scales[i] = to(i);
      try_sum(std::move(candidate), std::move(other));
    };
    with({"scale missing", name}, [](std::size_t) { return 1.0; });
    with({"scale doubled", name}, [&](std::size_t i) { return c->scales[i] * c->scales[i]; });
    with({"scale missing", name + ": that of column 0 for all", 5},
         [&](std::size_t) { return c->scales[0]; });
  }

  /// Divides by the number of chips, as a mean in place of a sum does.
  void sums_as_means() {
    for (const Axes& set : q_.sets()) {
      const int n = q_.torus().size(set);
      try_times(
          {"scale doubled",
           fmt::format("the mean over {} in place of the sum: divided by {}", words_of(set), n),
           10 * set.size(), set.to_string()},
          1.0 / n);
    }
  }

  /// Factor from units of the other base to the model's.
  double back() const { return 1 / to_other_base_; }

  bool base2_;
  double to_other_base_;  // factor from the model's units to those of the other base
};

}  // namespace

void try_scales(const Question& q, Search& search) { Scales(q, search).run(); }

}  // namespace shardproof::diagnosis
