// Faults of constant scales and gains: missing, doubled, or in another base.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "golden/diagnosis/detail/contraction.h"
#include "golden/diagnosis/detail/families.h"
#include "golden/diagnosis/detail/what_if.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof::diagnosis {
namespace {

class Scales {
 public:
  Scales(const Question& q, Search& search)
      : q_(q),
        search_(search),
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
  std::string id(std::string_view name) const {
    return checkpoint_id(q_.place().pass, q_.place().layer, name);
  }
  void change(std::string_view fault, std::string detail, int parameters,
              const Question::Change& c) {
    consider_change(q_, search_,
                    {.fault = fault,
                     .detail = std::move(detail),
                     .axes = "",
                     .parameters = parameters,
                     .at = {}},
                    c);
  }
  void tensor(std::string_view fault, std::string detail, int parameters, bounds::Carried value) {
    search_.consider({.fault = fault,
                      .detail = std::move(detail),
                      .axes = "",
                      .parameters = parameters,
                      .at = q_.logical(std::move(value))});
  }
  void times(std::string_view fault, std::string detail, int parameters, double factor) {
    tensor(fault, std::move(detail), parameters, scaled(q_.expected(), factor, q_.declared()));
  }
  template <class F>
  Tensor changed(const Tensor& of, F&& f) const {
    Tensor t = of;
    for (float& v : t.data) v = f(v);
    return t;
  }

  void norm() {
    const std::string gain = q_.weight_id(q_.name()), bias = gain + "_bias";
    const Tensor& g = *q_.weight(gain);
    const auto without = [&] {
      return Question::Change{
          .weights = q_.weights_with({{gain, changed(g, [](float) { return 1.0F; })}})};
    };
    if (folded()) change("convention", "declare norm_gain=folded", 0, without());
    change("scale missing", "the gain", 0, without());
    change("scale doubled", "the gain", 0,
           {.weights = q_.weights_with({{gain, changed(g, [](float v) { return v * v; })}})});
    change("scale missing", "1 is added to the gain", 5,
           {.weights = q_.weights_with({{gain, changed(g, [](float v) { return v + 1.0F; })}})});
    if (const Tensor* const b = q_.weight(bias)) {
      change("addend not added once", bias + " is left out", 1,
             {.weights = q_.weights_with({{bias, changed(*b, [](float) { return 0.0F; })}})});
      change("addend not added once", bias + " is added twice", 2,
             {.weights = q_.weights_with({{bias, changed(*b, [](float v) { return 2 * v; })}})});
      for (const Axes& set : q_.sets()) {
        const auto n = static_cast<float>(q_.torus().size(set));
        consider_change(
            q_, search_,
            {.fault = "addend not added once",
             .detail = fmt::format("{} is added {} times", bias, n),
             .axes = set.to_string(),
             .parameters = 3,
             .at = {}},
            {.weights = q_.weights_with({{bias, changed(*b, [n](float v) { return n * v; })}})});
      }
    }
    for (const auto& [other, values] : q_.replay().weights().all())
      if (other != gain && values.shape == g.shape &&
          (other.ends_with("norm") || other.ends_with("norm2")))
        change("another layer's weight", fmt::format("{} in place of {}", other, gain), 0,
               {.weights = q_.weights_with({{gain, values}})});
    ModelConfig model = q_.config();
    model.eps = 0.0;
    change("addend not added once", "eps is left out", 5, {.weights = q_.weights_with({}, model)});
    model = q_.config();
    if (base2_ && model.tied) {
      model.softmax = Softmax::base_e;
      change("scale missing", "eps is not scaled by c·c", 5,
             {.weights = q_.weights_with({}, model)});
      model = q_.config();
    }
    model.norm = model.norm == Norm::layernorm ? Norm::rmsnorm : Norm::layernorm;
    change("local statistics",
           model.norm == Norm::layernorm ? "the mean is subtracted" : "the mean is not subtracted",
           5, {.weights = q_.weights_with({}, model)});
    // The root of the sum in place of the root of the mean.
    const double extent = std::sqrt(static_cast<double>(q_.config().E));
    if (q_.weight(bias) == nullptr) {
      model = q_.config();
      model.eps /= static_cast<double>(q_.config().E);
      try {
        tensor(
            "scale missing", "the sum of squares is not divided by E", 6,
            scaled(q_.under({.weights = q_.weights_with({}, model)}), 1 / extent, q_.declared()));
      } catch (const Error& e) {
        if (e.label() != "bounds_c1") throw;
      }
    }
  }

  /// Returns a dumped norm with its gain put back.
  bounds::Carried with_gain(const std::string& norm) const {
    const bounds::Replay::Place place = q_.replay().place_of(norm);
    const Tensor& g = *q_.weight(shardproof::weight_id(place.layer, place.name));
    bounds::Carried with = q_.replay().value(norm);
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
        const bounds::Carried with = with_gain(norm), right = q_.replay().expected(norm);
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
    const bounds::Carried with = with_gain(q_.id());
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
    ModelConfig model = q_.config();
    const float scale = model.embed_scale;
    if (scale == 1.0F) {
      times("scale doubled", "the root of E, which this model has not", 2,
            std::sqrt(static_cast<double>(model.E)));
      return;
    }
    model.embed_scale = 1.0F;
    change("scale missing", "embed_scale", 0, {.weights = q_.weights_with({}, model)});
    times("scale doubled", "embed_scale", 0, static_cast<double>(scale));
  }

  void logits() {
    std::optional<Contraction> c = contraction_of(q_);
    const double scale = c->scales[0];
    const auto with = [&](std::string_view fault, const std::string& detail, double to,
                          double of_biases) {
      Contraction other = *c;
      other.scales.assign(other.columns, to);
      for (auto& bias : other.biases)
        for (double& b : bias.values) b *= of_biases;
      search_.consider(
          {.fault = fault,
           .detail = detail,
           .axes = "",
           .at = q_.logical(
               [&q = q_, o = std::make_shared<const Contraction>(std::move(other))](std::size_t g) {
                 const bounds::Evaluated v = o->at(g, q.declared());
                 // Scaling a bias rounds, too.
                 return bounds::Evaluated{v.center,
                                          v.radius + 0x1p-50 * std::abs(v.center) +
                                              2 * q.declared().operations.unit * std::abs(v.center),
                                          0.0};
               })});
    };
    with("convention", fmt::format("declare logits_base={}", other_base()), scale * to_other_base_,
         to_other_base_);
    if (base2_) {
      with("scale doubled", "logit_scale, which the weights have",
           static_cast<double>(q_.config().logit_scale), 1.0);
      return;
    }
    with("scale missing", "logit_scale", 1.0, 1.0);
    with("scale doubled", "logit_scale", scale * scale, 1.0);
    with("scale missing", "logit_scale, and the bias is scaled by it", scale, scale);
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
      times("convention", fmt::format("declare score_base={}", other_base()), 0, to_other_base_);
    if (base2_)
      times("scale missing", "log2(e), but the exponentials are of base 2", 5, kLn2);
    else
      times("scale doubled", "log2(e), but the exponentials are of base e", 5, kLog2E);
    if (q_.config().rope == Rope::alibi) {
      const Tensor& slopes = *q_.weight("alibi_slopes");
      change("addend not added once", "the ALiBi term is left out", 1,
             {.weights = q_.weights_with(
                  {{"alibi_slopes", changed(slopes, [](float) { return 0.0F; })}})});
      change("addend not added once", "the ALiBi term is added twice", 2,
             {.weights = q_.weights_with(
                  {{"alibi_slopes", changed(slopes, [](float v) { return 2 * v; })}})});
      change("addend not added once", "the ALiBi term is subtracted", 3,
             {.weights = q_.weights_with(
                  {{"alibi_slopes", changed(slopes, [](float v) { return -v; })}})});
      // The scale applies to the product alone, not to the ALiBi term.
      const auto of_product = [&](std::string_view fault, double factor) {
        const std::string operand = q_.operands()[0];
        change(fault, "1/sqrt(Q)", 0,
               {.values = {{operand, scaled(q_.value(operand), factor, q_.declared())}}});
      };
      if (!base2_) of_product("scale missing", root);
      of_product("scale doubled", 1 / root);
    }
    if (!base2_)
      times("scale missing", "1/sqrt(Q)", 0,
            root);  // in base 2 wq has the scale, and its absence shows in q
    times("scale doubled", "1/sqrt(Q)", 0, 1 / root);
    if (base2_) return;
    times("scale doubled", "1/sqrt(E) in place of 1/sqrt(Q)", 9,
          root / std::sqrt(static_cast<double>(q_.config().E)));
  }

  /// Returns whether the first dumped value of exp, denom, attn follows from the scores and maxima
  /// in the other units.
  bool follows_in_other_units() const {
    if (!q_.replay().dumped(id("score"))) return false;
    const auto& by = q_.declared();
    std::vector<std::pair<std::string, bounds::Carried>> values{
        {id("score"), scaled(q_.value(id("score")), back(), by)}};
    if (q_.replay().dumped(id("max")))
      values.emplace_back(id("max"), scaled(q_.value(id("max")), back(), by));
    for (const char* made : {"exp", "denom", "attn"})
      if (q_.replay().dumped(id(made))) return follows(q_, id(made), values);
    return false;
  }

  void exponentials() {
    const auto& by = q_.declared();
    const auto base = [&](std::string_view fault, std::string detail, int parameters,
                          double factor) {
      change(fault, std::move(detail), parameters,
             {.values = {{id("score"), scaled(q_.value(id("score")), factor, by)},
                         {id("max"), scaled(q_.value(id("max")), factor, by)}}});
    };
    if (scores_of_other_base())
      base("convention", fmt::format("declare score_base={}", other_base()), 0, back());
    if (base2_)
      base("scale doubled", "log2(e): e^x in place of 2^x", 1, kLog2E);
    else
      base("scale missing", "log2(e): 2^x in place of e^x", 1, 1 / kLog2E);
    bounds::Carried none(q_.value(id("max")).shape);
    change("addend not added once", "the maximum is not subtracted", 1,
           {.values = {{id("max"), none}}});
  }

  void mean() {
    const bounds::Carried& Z = q_.value(id("denom"));
    const auto Q = static_cast<std::size_t>(q_.config().Q);
    bounds::Carried missing = q_.expected(), doubled = q_.expected();
    const double unit = 2 * (q_.declared().operations.unit + 0x1p-53);
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const double z = Z.center[i / Q], more = Z.radius[i / Q] / z + unit;
      missing.center[i] *= z,
          missing.radius[i] = missing.radius[i] * z + more * std::abs(missing.center[i]);
      doubled.center[i] /= z,
          doubled.radius[i] = doubled.radius[i] / z + more * std::abs(doubled.center[i]);
    }
    tensor("scale missing", "not divided by the denominator", 0, std::move(missing));
    tensor("scale doubled", "divided by the denominator", 0, std::move(doubled));
  }

  void int8() {
    const std::optional<Contraction> c = contraction_of(q_);
    if (!c || c->scales.empty()) return;
    const std::string name(scale_of(q_.config(), c->terms[0].matrix)->name);
    const auto with = [&](std::string_view fault, const std::string& detail, int parameters,
                          auto to) {
      Contraction other = *c;
      for (std::size_t i = 0; i < other.columns; ++i) other.scales[i] = to(i);
      search_.consider(
          {.fault = fault,
           .detail = detail,
           .axes = "",
           .parameters = parameters,
           .at = q_.logical([&q = q_, o = std::make_shared<const Contraction>(std::move(other))](
                                std::size_t g) { return o->at(g, q.declared()); })});
    };
    with("scale missing", name, 0, [](std::size_t) { return 1.0; });
    with("scale doubled", name, 0, [&](std::size_t i) { return c->scales[i] * c->scales[i]; });
    with("scale missing", name + ": that of column 0 for all", 5,
         [&](std::size_t) { return c->scales[0]; });
  }

  /// Divides by the number of chips, as a mean in place of a sum does.
  void sums_as_means() {
    for (const Axes& set : q_.sets()) {
      const int n = q_.torus().size(set);
      search_.consider({.fault = "scale doubled",
                        .detail = fmt::format("the mean over {} in place of the sum: divided by {}",
                                              words_of(set), n),
                        .axes = set.to_string(),
                        .parameters = 10 * set.size(),
                        .at = q_.logical(scaled(q_.expected(), 1.0 / n, q_.declared()))});
    }
  }

  /// Factor from units of the other base to the model's.
  double back() const { return 1 / to_other_base_; }

  const Question& q_;
  Search& search_;
  bool base2_;
  double to_other_base_;  // factor from the model's units to those of the other base
};

}  // namespace

void try_scales(const Question& q, Search& search) { Scales(q, search).run(); }

}  // namespace shardproof::diagnosis
