// Run: rotation, caches and attention.
#include <algorithm>
#include <cmath>

#include "golden/rerun/run.h"
#include "weights/base/detail/index.h"

namespace shardproof::rerun {

template <class Real>
auto Run<Real>::attention(const Part<Real>& part) -> Vector {
  const ModelConfig& c = model_.config;
  const Part<Real>& scores = part_of(part_of(part.of.operands[0]).of.operands[0]);
  const Attention names{scores, part.of.operands[1], part.name};
  const Vector& q = operand(scores, 0);
  const auto& caches = caches_of_layer();
  const std::vector<Vector>&keys = caches.at(scores.of.operands[1]),
        &values = caches.at(part.of.operands[2]);
  const std::size_t H = at(c.H), Q = at(c.Q);
  Vector attn(q.size());
  for (std::size_t n = 0; n < q.size() / Q; ++n) {
    const Token& token = tokens_[n / H];
    attend(names, token, n % H, q.data() + n * Q, keys[token.row], values[token.row],
           attn.data() + n * Q);
  }
  return attn;
}

template <class Real>
auto Run<Real>::rotation(const Part<Real>& part) -> Vector {
  Vector x = operand(part, 0);
  const Vector &cosines = part.weights[0], &sines = part.weights[1];
  const std::size_t Q = at(model_.config.Q), heads = x.size() / Q / tokens_.size();
  const std::size_t pairs = cosines.size() / at(model_.config.positions);
  const bool half = model_.config.rope == Rope::half;
  for (std::size_t n = 0; n < x.size() / Q; ++n)
    for (std::size_t j = 0; j < pairs; ++j) {
      const std::size_t entry = tokens_[n / heads].position * pairs + j;
      const Real c = kept(cosines[entry], Place::tables);
      const Real s = kept(sines[entry], Place::tables);
      Real& a = x[n * Q + (half ? j : 2 * j)];
      Real& b = x[n * Q + (half ? j + pairs : 2 * j + 1)];
      const Real first = kept(a * c, Place::turned) - kept(b * s, Place::turned);
      const Real second = kept(b * c, Place::turned) + kept(a * s, Place::turned);
      a = kept(first);
      b = kept(second);
    }
  return x;
}

template <class Real>
void Run<Real>::append(const Part<Real>& part) {
  const std::size_t KQ = at(model_.config.K * model_.config.Q);
  Vector added = operand(part, 0);
  if (model_.config.cache == NumberFormat::bf16)
    for (Real& number : added) number = kept_as(number, NumberFormat::bf16);
  std::vector<Vector>& rows = caches_of_layer()[part.name];
  rows.resize(at(plan_.batch()));
  for (std::size_t t = 0; t < tokens_.size(); ++t) {
    Vector& row = rows[tokens_[t].row];
    const std::size_t slot = tokens_[t].position * KQ;
    if (row.size() < slot + KQ) row.resize(slot + KQ);
    std::copy_n(added.data() + t * KQ, KQ, row.data() + slot);
  }
  show_cache(part.name);
}

template <class Real>
void Run<Real>::show_cache(const std::string& name) {
  if (!watch_.wants(id(name))) return;
  const std::size_t KQ = at(model_.config.K * model_.config.Q);
  const std::size_t before = at(plan_.prefix.length) * KQ;  // the prefix's slots
  const std::size_t own = at(plan_.cached + plan_.L) * KQ;
  std::vector<double> all(at(plan_.batch()) * own, 0.0);
  const std::vector<Vector>& rows = caches_of_layer().at(name);
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t i = before; i < rows[row].size() && i < before + own; ++i)
      all[row * own + i - before] = static_cast<double>(rows[row][i]);
  watch_.see(id(name), all);
}

template <class Real>
void Run<Real>::attend(const Attention& of, const Token& token, std::size_t head, const Real* q,
                       const Vector& keys_of_row, const Vector& values_of_row, Real* out) {
  const ModelConfig& c = model_.config;
  const std::size_t Q = at(c.Q), KQ = at(c.K) * Q, keys = token.position + 1;
  const std::size_t first = head * at(c.K) / at(c.H) * Q;  // of its kv head
  const Real one = 1;
  Vector& s = scores_;
  s.resize(keys);
  const Order& of_score = order(of.scores.name, Q);
  for (std::size_t m = 0; m < keys; ++m) {
    const Real* const key = keys_of_row.data() + m * KQ + first;
    adder_.add_up(
        of_score, {}, 1, [&](std::size_t k) { return q[k]; },
        [&](std::size_t k) { return key + k; }, &s[m]);
    s[m] = kept(kept(s[m], Place::product_of_score) * model_.score_scale, Place::score);
    if (!of.scores.weights.empty()) {
      const auto distance = static_cast<Real>(token.position - m);
      s[m] = kept(s[m] - of.scores.weights[0][head] * distance, Place::score);
    }
  }
  const Real top = *std::max_element(s.begin(), s.end());
  for (Real& v : s) {
    const Real below = kept(v - top, Place::difference);
    v = c.softmax == Softmax::base2 ? std::exp2(below) : std::exp(below);
  }
  Real denom;
  adder_.add_up(
      order(of.denominator, keys), {}, 1, [&](std::size_t m) { return s[m]; },
      [&](std::size_t) { return &one; }, &denom);
  const bool quotients = places_.has(Place::probability) || forms_.quotients;
  for (Real& v : s)
    v = quotients ? kept(v / denom, Place::probability) : kept(v, Place::exponential);
  adder_.add_up(
      order(of.mean, keys), {}, Q, [&](std::size_t m) { return s[m]; },
      [&](std::size_t m) { return values_of_row.data() + m * KQ + first; }, out);
  for (std::size_t i = 0; i < Q; ++i) out[i] = kept(quotients ? out[i] : out[i] / denom);
}

template std::vector<float> Run<float>::attention(const Part<float>&);
template std::vector<float> Run<float>::rotation(const Part<float>&);
template void Run<float>::append(const Part<float>&);
template std::vector<double> Run<double>::attention(const Part<double>&);
template std::vector<double> Run<double>::rotation(const Part<double>&);
template void Run<double>::append(const Part<double>&);

}  // namespace shardproof::rerun
