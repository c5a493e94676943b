#include "golden/rerun/run.h"

#include <cmath>

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
    caches.assign(model_.layers.size(), std::vector<Cache>(at(plan.batch())));
    if (plan.prefix.given()) start_from_prefixes(plan);
  }
}

/// A row has a single cache, which starts with that of its prefix.
template <class Real>
void Run<Real>::start_from_prefixes(const PassPlan& plan) {
  for (std::size_t layer = 0; layer < caches_.size(); ++layer)
    for (std::int64_t row = 0; row < plan.batch(); ++row)
      caches_[layer][at(row)] = prefixes_[layer][at(plan.prefix.of_row(row, plan.batch()))];
}

template <class Real>
void Run<Real>::pass(const PassPlan& plan, const IntTensor& ids) {
  begin(plan);
  layer_ = -1;
  Vector x = embed(ids);
  for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
    layer_ = static_cast<std::int64_t>(layer);
    orders_.clear();
    x = block(layer, x);
  }
  layer_ = -1;
  orders_.clear();
  unembed(norm("final_norm", x, model_.final_norm));
}

template <class Real>
auto Run<Real>::embed(const IntTensor& ids) -> Vector {
  const std::size_t E = at(model_.config.E);
  const bool on_wire = arithmetic_.wire_roundings > 0;
  const Real scale = kept(static_cast<Real>(model_.config.embed_scale), Place::embed_scale);
  Vector x(tokens_.size() * E);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Real v = model_.table[at(ids.data[tokens_[i / E].place]) * E + i % E];
    x[i] = kept((on_wire ? rounded(v, arithmetic_.wire) : v) * scale);
  }
  show("embed", x);
  return x;
}

template <class Real>
auto Run<Real>::block(std::size_t layer, const Vector& x) -> Vector {
  const auto& w = model_.layers[layer];
  const Vector n = norm("norm", x, w.norm);
  const Vector attn = attention(layer, n);
  if (model_.config.block == Block::parallel) return outputs(layer, x, attn, ffn(layer, n));
  const Vector mid = add("mid", x, project("attn_out", {{&attn, &w.attn_out}}));
  const Vector hidden = ffn(layer, norm("norm2", mid, w.norm2));
  return add("out", mid, project("ffn_out", {{&hidden, &w.ffn_out}}));
}

/// The outputs of a parallel block.
template <class Real>
auto Run<Real>::outputs(std::size_t layer, const Vector& x, const Vector& attn,
                        const Vector& hidden) -> Vector {
  const auto& w = model_.layers[layer];
  if (!places_.has(Place::each_addition))
    return add("out", x, project("block_out", {{&attn, &w.attn_out}, {&hidden, &w.ffn_out}}));
  const Vector a = project("attn_out", {{&attn, &w.attn_out}});
  const Vector f = project("ffn_out", {{&hidden, &w.ffn_out}});
  if (watch_.wants(id("block_out"))) add("block_out", a, f);
  const Vector* const addends[] = {&x, &a, &f};
  const std::size_t last = forms_.addends;
  const Vector two = add("", *addends[(last + 1) % 3], *addends[(last + 2) % 3]);
  return add("out", two, *addends[last]);
}

template <class Real>
auto Run<Real>::norm(std::string_view name, const Vector& x,
                     const typename Model<Real>::Norm& weights) -> Vector {
  const std::size_t E = at(model_.config.E);
  const auto extent = static_cast<Real>(E);
  const Real one = 1;
  Vector y = x;
  for (std::size_t row = 0; row < x.size() / E; ++row) {
    Real* const d = y.data() + row * E;
    if (model_.config.norm == Norm::layernorm) {
      Real sum;
      adder_.add_up(
          order(std::string(name) + " sum", E), {}, 1, [&](std::size_t k) { return d[k]; },
          [&](std::size_t) { return &one; }, &sum);
      const Real mean = kept(sum / extent, Place::mean);
      for (std::size_t e = 0; e < E; ++e) d[e] = kept(d[e] - mean, Place::centered);
    }
    Real squares;
    adder_.add_up(
        order(name, E), {}, 1, [&](std::size_t k) { return d[k]; },
        [&](std::size_t k) { return d + k; }, &squares);
    const Real r = kept(Real{1} / std::sqrt(squares / extent + model_.eps), Place::root);
    for (std::size_t e = 0; e < E; ++e) {
      const Real v = kept(d[e] * r, Place::normed) * weights.gain[e];
      d[e] = kept(weights.bias.empty() ? v : kept(v, Place::gained) + weights.bias[e]);
    }
  }
  show(name, y);
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
auto Run<Real>::ffn(std::size_t layer, const Vector& x) -> Vector {
  const auto& w = model_.layers[layer];
  Vector hidden = project("gate", {{&x, &w.gate}});
  if (model_.config.ffn == Ffn::swiglu || model_.config.ffn == Ffn::geglu) {
    const Vector up = project("up", {{&x, &w.up}});
    for (std::size_t i = 0; i < hidden.size(); ++i)
      hidden[i] = kept(kept(activation(hidden[i]), Place::activated) * up[i]);
  } else {
    for (Real& v : hidden) v = kept(activation(v));
  }
  show("hidden", hidden);
  return hidden;
}

template <class Real>
auto Run<Real>::project(std::string_view name, Inputs inputs) -> Vector {
  // The terms of one sum, concatenated: the position of each in a row, and its row of weights.
  struct Term {
    const Real* x;
    std::size_t width;
    const Real* weights;
  };
  std::vector<Term> terms;
  for (const auto& [input, matrix] : inputs)
    for (std::size_t k = 0; k < matrix->inputs(); ++k)
      terms.push_back(
          {input->data() + k, matrix->inputs(), matrix->numbers.data() + k * matrix->columns});
  const Matrix& first = *inputs.begin()->second;
  const std::size_t columns = first.columns;
  const Sums sums{arithmetic_.sums == NumberFormat::f32 ? NumberFormat::f64 : arithmetic_.sums,
                  arithmetic_.wire_roundings, arithmetic_.wire};
  const Order& in = order(name, terms.size());
  Vector y(tokens_.size() * columns);
  for (std::size_t t = 0; t < tokens_.size(); ++t) {
    Real* const out = y.data() + t * columns;
    adder_.add_up(
        in, sums, columns, [&](std::size_t k) { return terms[k].x[t * terms[k].width]; },
        [&](std::size_t k) { return terms[k].weights; }, out);
    for (std::size_t c = 0; c < columns; ++c) {
      Real v = kept(out[c], Place::sum);
      if (!first.scales.empty()) v *= first.scales[c];
      for (const auto& [input, matrix] : inputs)
        if (!matrix->bias.empty()) v += matrix->bias[c];
      out[c] = kept(v);
    }
  }
  show(name, y);
  return y;
}

template <class Real>
auto Run<Real>::add(std::string_view name, const Vector& x, const Vector& y) -> Vector {
  Vector sum(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] = kept(x[i] + y[i]);
  if (!name.empty()) show(name, sum);
  return sum;
}

/// The logits of each row's last token.
template <class Real>
void Run<Real>::unembed(const Vector& x) {
  const std::size_t E = at(model_.config.E);
  const Matrix& w = model_.unembed;
  const Order& in = order("logits", E);
  Vector y(last_.size() * w.columns);
  for (std::size_t row = 0; row < last_.size(); ++row) {
    const Real* const from = x.data() + last_[row] * E;
    Real* const out = y.data() + row * w.columns;
    adder_.add_up(
        in, {}, w.columns, [&](std::size_t k) { return from[k]; },
        [&](std::size_t k) { return w.numbers.data() + k * w.columns; }, out);
    for (std::size_t v = 0; v < w.columns; ++v) {
      out[v] = kept(kept(out[v], Place::sum) * model_.logit_scale, Place::logits);
      if (!w.bias.empty()) out[v] = kept(out[v] + w.bias[v], Place::logits);
    }
  }
  show("logits", y, true);
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
