// Run: rotation, caches and attention.
#include <algorithm>
#include <cmath>
#include <utility>

#include "golden/rerun/run.h"
#include "weights/base/detail/index.h"

namespace shardproof::rerun {
template <class Real>
auto Run<Real>::attention(std::size_t layer, const Vector& x) -> Vector {
  const ModelConfig& c = model_.config;
  const auto& w = model_.layers[layer];
  Vector q = project("q", {{&x, &w.q}}), k = project("k", {{&x, &w.k}});
  Vector v = project("v", {{&x, &w.v}});
  if (rotates(c)) {
    rotate("q_rot", q);
    rotate("k_rot", k);
  }
  append(layer, std::move(k), std::move(v));
  const std::size_t H = at(c.H), Q = at(c.Q);
  const auto& caches = (plan_.phase == Phase::prefix ? prefixes_ : caches_)[layer];
  Vector attn(q.size());
  for (std::size_t n = 0; n < q.size() / Q; ++n) {
    const Token& token = tokens_[n / H];
    attend(token, n % H, q.data() + n * Q, caches[token.row], attn.data() + n * Q);
  }
  show("attn", attn);
  return attn;
}

template <class Real>
void Run<Real>::rotate(std::string_view name, Vector& x) {
  const std::size_t Q = at(model_.config.Q), heads = x.size() / Q / tokens_.size();
  const std::size_t pairs = model_.cosines.size() / at(model_.config.positions);
  const bool half = model_.config.rope == Rope::half;
  for (std::size_t n = 0; n < x.size() / Q; ++n)
    for (std::size_t j = 0; j < pairs; ++j) {
      const std::size_t entry = tokens_[n / heads].position * pairs + j;
      const Real c = kept(model_.cosines[entry], Place::tables);
      const Real s = kept(model_.sines[entry], Place::tables);
      Real& a = x[n * Q + (half ? j : 2 * j)];
      Real& b = x[n * Q + (half ? j + pairs : 2 * j + 1)];
      const Real first = kept(a * c, Place::turned) - kept(b * s, Place::turned);
      const Real second = kept(b * c, Place::turned) + kept(a * s, Place::turned);
      a = kept(first);
      b = kept(second);
    }
  show(name, x);
}

template <class Real>
void Run<Real>::append(std::size_t layer, Vector k, Vector v) {
  const std::size_t KQ = at(model_.config.K * model_.config.Q);
  if (model_.config.cache == CacheType::bf16)
    for (Vector* const part : {&k, &v})
      for (Real& number : *part) number = kept_as(number, NumberFormat::bf16);
  auto& caches = (plan_.phase == Phase::prefix ? prefixes_ : caches_)[layer];
  for (std::size_t t = 0; t < tokens_.size(); ++t) {
    Cache& cache = caches[tokens_[t].row];
    const std::size_t slot = tokens_[t].position * KQ;
    for (const auto& [part, from] : {std::pair(&cache.k, &k), std::pair(&cache.v, &v)}) {
      if (part->size() < slot + KQ) part->resize(slot + KQ);
      std::copy_n(from->data() + t * KQ, KQ, part->data() + slot);
    }
  }
  show_cache(layer, "k_cache", &Cache::k);
  show_cache(layer, "v_cache", &Cache::v);
}

template <class Real>
void Run<Real>::show_cache(std::size_t layer, std::string_view name, Vector Cache::*part) {
  if (!watch_.wants(id(name))) return;
  const std::size_t KQ = at(model_.config.K * model_.config.Q);
  const std::size_t before = at(plan_.prefix.length) * KQ;  // the prefix's slots
  const std::size_t own = at(plan_.cached + plan_.L) * KQ;
  std::vector<double> all(at(plan_.batch()) * own, 0.0);
  const auto& caches = (plan_.phase == Phase::prefix ? prefixes_ : caches_)[layer];
  for (std::size_t row = 0; row < caches.size(); ++row) {
    const Vector& numbers = caches[row].*part;
    for (std::size_t i = before; i < numbers.size() && i < before + own; ++i)
      all[row * own + i - before] = static_cast<double>(numbers[i]);
  }
  watch_.see(id(name), all);
}

template <class Real>
void Run<Real>::attend(const Token& token, std::size_t head, const Real* q, const Cache& cache,
                       Real* out) {
  const ModelConfig& c = model_.config;
  const std::size_t Q = at(c.Q), KQ = at(c.K) * Q, keys = token.position + 1;
  const std::size_t first = head * at(c.K) / at(c.H) * Q;  // of its kv head
  const Real one = 1;
  Vector& s = scores_;
  s.resize(keys);
  const Order& of_score = order("score", Q);
  for (std::size_t m = 0; m < keys; ++m) {
    const Real* const key = cache.k.data() + m * KQ + first;
    adder_.add_up(
        of_score, {}, 1, [&](std::size_t k) { return q[k]; },
        [&](std::size_t k) { return key + k; }, &s[m]);
    s[m] = kept(kept(s[m], Place::product_of_score) * model_.score_scale, Place::score);
    if (!model_.slopes.empty()) {
      const auto distance = static_cast<Real>(token.position - m);
      s[m] = kept(s[m] - model_.slopes[head] * distance, Place::score);
    }
  }
  const Real top = *std::max_element(s.begin(), s.end());
  for (Real& v : s) {
    const Real below = kept(v - top, Place::difference);
    v = c.softmax == Softmax::base2 ? std::exp2(below) : std::exp(below);
  }
  Real denom;
  adder_.add_up(
      order("denom", keys), {}, 1, [&](std::size_t m) { return s[m]; },
      [&](std::size_t) { return &one; }, &denom);
  const bool quotients = places_.has(Place::probability) || forms_.quotients;
  for (Real& v : s)
    v = quotients ? kept(v / denom, Place::probability) : kept(v, Place::exponential);
  adder_.add_up(
      order("attn", keys), {}, Q, [&](std::size_t m) { return s[m]; },
      [&](std::size_t m) { return cache.v.data() + m * KQ + first; }, out);
  for (std::size_t i = 0; i < Q; ++i) out[i] = kept(quotients ? out[i] : out[i] / denom);
}

template std::vector<float> Run<float>::attention(std::size_t, const std::vector<float>&);
template std::vector<double> Run<double>::attention(std::size_t, const std::vector<double>&);

}  // namespace shardproof::rerun
