#include "golden/rerun/run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "weights/base/detail/index.h"
#include "weights/model/registry.h"

namespace shardproof::rerun {
namespace {

std::uint32_t drawn_places(const Places& places, Draw draw) {
  return places.on | (places.drawn & static_cast<std::uint32_t>(draw.next()));
}

}  // namespace

template <class Real>
Run<Real>::Run(const Model<Real>& model, const Arithmetic& arithmetic, std::uint64_t seed,
               std::uint64_t number, Watch& watch)
    : model_(model),
      arithmetic_(arithmetic),
      seed_(seed),
      number_(number),
      watch_(watch),
      chance_(draw("rerun chance")) {
  places_.on = drawn_places(arithmetic.places, draw("rerun places"));
  Draw forms = draw("rerun forms");
  forms_ = {forms.coin(), forms.coin(), forms.coin(), forms.below(3)};
}

template <class Real>
void Run<Real>::begin(const PassPlan& plan) {
  plan_ = plan;
  tokens_.clear();
  last_.clear();
  std::size_t row = 0;
  for (const PassRows& group : plan.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, ++row) {
      for (std::int64_t l = 0; l < group.tokens; ++l)
        tokens_.push_back({row, row * at(plan.L) + at(l), at(group.start + l)});
      if (group.tokens > 0) last_.push_back(tokens_.size() - 1);
    }
  Caches& caches = plan.phase == Phase::prefix ? prefixes_ : caches_;
  if (caches.empty()) {
    caches.assign(model_.layers.size(), {});
    if (plan.prefix.given()) start_from_prefixes(plan);
  }
}

/// A row has a single cache, which starts with that of its prefix.
template <class Real>
void Run<Real>::start_from_prefixes(const PassPlan& plan) {
  for (std::size_t layer = 0; layer < caches_.size(); ++layer)
    for (const auto& [name, rows] : prefixes_[layer])
      for (std::int64_t row = 0; row < plan.batch(); ++row)
        caches_[layer][name].push_back(rows[at(plan.prefix.of_row(row, plan.batch()))]);
}

template <class Real>
void Run<Real>::pass(const PassPlan& plan, const IntTensor& ids) {
  begin(plan);
  ids_ = &ids;
  layer_ = -1;
  Vector x = section(model_.embedding, {});
  for (const Parts& layer : model_.layers) {
    ++layer_;
    x = section(layer, std::move(x));
  }
  layer_ = -1;
  section(model_.head, std::move(x));
}

template <class Real>
auto Run<Real>::section(const Parts& parts, Vector in) -> Vector {
  orders_.clear();
  values_.clear();
  values_["in"] = std::move(in);
  parts_ = &parts;
  for (const Part<Real>& part : parts) {
    Vector own = value(part);
    if (!own.empty()) show(part.name, own, part.name == result_of(TextSection::head));
    values_[part.name] = std::move(own);
  }
  return std::move(values_.at(parts.back().name));
}

template <class Real>
const Part<Real>& Run<Real>::part_of(const std::string& name) const {
  return *std::find_if(parts_->begin(), parts_->end(),
                       [&](const Part<Real>& part) { return part.name == name; });
}

template <class Real>
auto Run<Real>::value(const Part<Real>& part) -> Vector {
  switch (part.of.kind) {
    case CompositeKind::lookup:
      return embed(part);
    case CompositeKind::norm:
      return norm(part);
    case CompositeKind::product:
      if (layer_ < 0) return logits(part);
      return part.of.operands.size() == 2 ? project_terms(part) : project(part);
    case CompositeKind::rotation:
      return rotation(part);
    case CompositeKind::cache:
      append(part);
      return {};
    case CompositeKind::mean:
      return attention(part);
    case CompositeKind::activation:
      return hidden(part);
    case CompositeKind::addition:
      return addition(part);
    default:
      return {};
  }
}

template <class Real>
auto Run<Real>::embed(const Part<Real>& part) -> Vector {
  const std::size_t E = at(model_.config.E);
  const bool on_wire = arithmetic_.wire_roundings > 0;
  const Real scale = kept(static_cast<Real>(model_.config.embed_scale), Place::embed_scale);
  Vector x(tokens_.size() * E);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Real v = part.weights[0][at(ids_->data[tokens_[i / E].place]) * E + i % E];
    x[i] = kept((on_wire ? rounded(v, arithmetic_.wire) : v) * scale);
  }
  return x;
}

/// The joint sum of a parallel block, or its two terms, each rounded.
template <class Real>
auto Run<Real>::project_terms(const Part<Real>& part) -> Vector {
  if (!places_.has(Place::each_addition)) return project(part);
  const Parts& terms = model_.terms[static_cast<std::size_t>(layer_)];
  for (const Part<Real>& term : terms) show(term.name, values_[term.name] = project(term));
  if (watch_.wants(id(part.name)))
    show(part.name, add(values_.at(terms[0].name), values_.at(terms[1].name)));
  return {};
}

/// A sum of two values; of three, where the second is a sum whose terms are rounded.
template <class Real>
auto Run<Real>::addition(const Part<Real>& part) -> Vector {
  if (!operand(part, 1).empty()) return add(operand(part, 0), operand(part, 1));
  const Parts& terms = model_.terms[static_cast<std::size_t>(layer_)];
  const Vector* const addends[] = {&operand(part, 0), &values_.at(terms[0].name),
                                   &values_.at(terms[1].name)};
  const std::size_t last = forms_.addends;
  return add(add(*addends[(last + 1) % 3], *addends[(last + 2) % 3]), *addends[last]);
}

template <class Real>
auto Run<Real>::norm(const Part<Real>& part) -> Vector {
  const std::size_t E = at(model_.config.E);
  const auto extent = static_cast<Real>(E);
  const Real one = 1;
  const Vector& x = operand(part, 0);
  const Vector& gain = part.weights[0];
  Vector y = x;
  for (std::size_t row = 0; row < x.size() / E; ++row) {
    Real* const d = y.data() + row * E;
    if (model_.config.norm == Norm::layernorm) {
      Real sum;
      adder_.add_up(
          order(part.name + " sum", E), {}, 1, [&](std::size_t k) { return d[k]; },
          [&](std::size_t) { return &one; }, &sum);
      const Real mean = kept(sum / extent, Place::mean);
      for (std::size_t e = 0; e < E; ++e) d[e] = kept(d[e] - mean, Place::centered);
    }
    Real squares;
    adder_.add_up(
        order(part.name, E), {}, 1, [&](std::size_t k) { return d[k]; },
        [&](std::size_t k) { return d + k; }, &squares);
    const Real r = kept(Real{1} / std::sqrt(squares / extent + model_.eps), Place::root);
    for (std::size_t e = 0; e < E; ++e) {
      const Real v = kept(d[e] * r, Place::normed) * gain[e];
      d[e] = kept(part.biases.empty() ? v : kept(v, Place::gained) + part.biases[0][e]);
    }
  }
  return y;
}

/// `inner` rounds each operation.
template <class Real>
Real Run<Real>::activation(Real g) {
  const ModelConfig& c = model_.config;
  const Real one = 1, half = static_cast<Real>(0.5);
  const auto in = [&](Real v) { return kept(v, Place::inner); };
  if (c.ffn == Ffn::gelu_erf) {
    const Real z = in(g * static_cast<Real>(0.7071067811865476)), h = in(half * g);
    return forms_.one_plus ? h * in(one + in(std::erf(z))) : h * in(std::erfc(-z));
  }
  if (c.ffn != Ffn::swiglu) {
    const Real cube = in(in(static_cast<Real>(0.044715) * in(g * g)) * g);
    const Real z = in(static_cast<Real>(0.7978845608028654) * in(g + cube));
    return forms_.one_plus ? in(half * g) * in(one + in(std::tanh(z)))
                           : g / in(one + in(std::exp(-2 * z)));
  }
  if (c.softmax == Softmax::base2) g *= 2;
  const Real under = in(one + in(std::exp(-g)));
  return forms_.sigmoid ? g * in(one / under) : g / under;
}

template <class Real>
auto Run<Real>::hidden(const Part<Real>& part) -> Vector {
  Vector y = operand(part, 0);
  const Vector* const up = part.of.operands.size() == 2 ? &operand(part, 1) : nullptr;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Real activated = activation(y[i]);
    y[i] = kept(up == nullptr ? activated : kept(activated, Place::activated) * (*up)[i]);
  }
  return y;
}

template <class Real>
auto Run<Real>::project(const Part<Real>& part) -> Vector {
  // The terms of one sum, concatenated: the position of each in a row, and its row of weights.
  struct Term {
    const Real* x;
    std::size_t width;
    const Real* weights;
  };
  const std::size_t columns = part.columns;
  std::vector<Term> terms;
  for (std::size_t n = 0; n < part.weights.size(); ++n) {
    const std::size_t inputs = part.weights[n].size() / columns;
    for (std::size_t k = 0; k < inputs; ++k)
      terms.push_back({operand(part, n).data() + k, inputs, part.weights[n].data() + k * columns});
  }
  const Sums sums{arithmetic_.sums == NumberFormat::f32 ? NumberFormat::f64 : arithmetic_.sums,
                  arithmetic_.wire_roundings, arithmetic_.wire};
  const Order& in = order(part.name, terms.size());
  Vector y(tokens_.size() * columns);
  for (std::size_t t = 0; t < tokens_.size(); ++t) {
    Real* const out = y.data() + t * columns;
    adder_.add_up(
        in, sums, columns, [&](std::size_t k) { return terms[k].x[t * terms[k].width]; },
        [&](std::size_t k) { return terms[k].weights; }, out);
    for (std::size_t c = 0; c < columns; ++c) {
      Real v = kept(out[c], Place::sum);
      if (!part.scales.empty()) v *= part.scales[c];
      for (const Vector& bias : part.biases) v += bias[c];
      out[c] = kept(v);
    }
  }
  return y;
}

template <class Real>
auto Run<Real>::add(const Vector& x, const Vector& y) -> Vector {
  Vector sum(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] = kept(x[i] + y[i]);
  return sum;
}

/// The logits of each row's last token.
template <class Real>
auto Run<Real>::logits(const Part<Real>& part) -> Vector {
  const std::size_t columns = part.columns;
  const Vector &x = operand(part, 0), &w = part.weights[0];
  const std::size_t inputs = w.size() / columns;
  const Order& in = order(part.name, inputs);
  Vector y(last_.size() * columns);
  for (std::size_t row = 0; row < last_.size(); ++row) {
    const Real* const from = x.data() + last_[row] * inputs;
    Real* const out = y.data() + row * columns;
    adder_.add_up(
        in, {}, columns, [&](std::size_t k) { return from[k]; },
        [&](std::size_t k) { return w.data() + k * columns; }, out);
    for (std::size_t v = 0; v < columns; ++v) {
      out[v] = kept(kept(out[v], Place::sum) * model_.logit_scale, Place::logits);
      for (const Vector& bias : part.biases) out[v] = kept(out[v] + bias[v], Place::logits);
    }
  }
  return y;
}

template <class Real>
const Order& Run<Real>::order(std::string_view name, std::size_t n) {
  const std::pair key{std::string(name), n};
  const auto found = orders_.find(key);
  if (found != orders_.end()) return found->second;
  const Draw own = draw("rerun order " + id(name) + " " + std::to_string(n));
  return orders_.emplace(key, Order(n, own)).first->second;
}

template <class Real>
std::string Run<Real>::id(std::string_view name) const {
  return checkpoint_id(plan_.name, layer_, name);
}

template <class Real>
void Run<Real>::show(std::string_view name, const Vector& rows, bool last) {
  const std::string of = id(name);
  if (!watch_.wants(of)) return;
  const std::size_t count = last ? last_.size() : tokens_.size();
  const std::size_t width = rows.size() / count;
  const std::size_t places = at(plan_.batch() * (last ? 1 : plan_.L));
  std::vector<double> all(places * width, 0.0);
  for (std::size_t t = 0; t < count; ++t) {
    const std::size_t place = last ? tokens_[last_[t]].row : tokens_[t].place;
    for (std::size_t i = 0; i < width; ++i)
      all[place * width + i] = static_cast<double>(rows[t * width + i]);
  }
  watch_.see(of, all);
}

template class Run<float>;
template class Run<double>;

}  // namespace shardproof::rerun
