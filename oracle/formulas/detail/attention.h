#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "oracle/formulas/detail/model.h"
#include "oracle/formulas/detail/pass.h"

namespace shardproof::oracle {

/// Keys and values of one layer so far, B x M x K x Q; null before the first pass.
template <class Math>
struct Cache {
  Operand<Math> k, v;
};

/// Copies the vectors of q, k_cache, v_cache or exp of one batch row for the heads of one kv head:
/// for each token or slot `heads` neighbours from head `first` on.
template <class T>
std::vector<T> of_heads(const Array<T>& t, std::size_t b, std::size_t first, std::size_t heads) {
  const std::size_t tokens = extent(t, 1), all_heads = extent(t, 2), width = extent(t, 3);
  std::vector<T> vectors;
  vectors.reserve(tokens * heads * width);
  for (std::size_t i = 0; i < tokens; ++i) {
    const T* const begin = &t.data[((b * tokens + i) * all_heads + first) * width];
    vectors.insert(vectors.end(), begin, begin + heads * width);
  }
  return vectors;
}

/// Attention of one layer in one pass. The causal mask: a query at position p sees the keys 0 ... p
/// of its row, and head h reads kv head h·K/H, so that the heads of kv head g are H/K neighbours.
template <class Math>
class Attention {
 public:
  using size_t = std::size_t;
  using Element = typename Math::Element;
  using Vectors = typename Math::Vectors;
  using Tensor = TensorOf<Math>;

  Attention(Pass<Math>& pass, const Model<Math>& model, int layer)
      : pass_(pass), model_(model), math_(pass.math()), layer_(layer) {}

  /// Computes attn from q, B x L x H x Q, and k and v, B x L x K x Q, before they are rotated;
  /// extends the cache by k and v.
  Operand<Math> attend(Operand<Math> q, Operand<Math> k, const Operand<Math>& v,
                       Cache<Math>& cache) {
    if (rotates(model_.config)) {
      q = rotate("q_rot", q);
      k = rotate("k_rot", k);
    }
    cache.k = append("k_cache", cache.k, k);
    cache.v = append("v_cache", cache.v, v);
    M_ = extent(*cache.k.tensor, 1);
    const Operand<Math> score = scores(q, cache.k);
    const auto [exp, denom] = softmax(score);
    return mean(exp, denom, cache.v);
  }

 private:
  /// Rotates the pairs of each head's first 2·J channels, J the table's width.
  Operand<Math> rotate(std::string_view name, const Operand<Math>& x) {
    const size_t pairs = extent(*model_.cos, 1);
    const bool half = model_.config.rope == Rope::half;
    const size_t heads = extent(*x.tensor, 2);
    Value<Math> y{*x.tensor, pairs == 0 ? x.degree : product(x.degree, kVariable)};
    pass_.each_row(B_ * L_, heads * Q_, [&](size_t row) {  // b·L + i
      const auto position = static_cast<size_t>(pass_.position(row / L_, row % L_));
      for (size_t h = 0; h < heads; ++h) {
        const Element* const from = x.tensor->data.data() + (row * heads + h) * Q_;
        Element* const to = y.tensor.data.data() + (row * heads + h) * Q_;
        for (size_t j = 0; j < pairs; ++j) {
          const Element c = model_.cos->data[position * pairs + j];
          const Element s = model_.sin->data[position * pairs + j];
          const size_t first = half ? j : 2 * j;
          const size_t second = half ? j + pairs : 2 * j + 1;
          const Element a = from[first], d = from[second];
          to[first] = math_.element(math_.subtract(math_.multiply(a, c), math_.multiply(d, s)));
          to[second] = math_.element(math_.add(math_.multiply(d, c), math_.multiply(a, s)));
        }
      }
    });
    return pass_.store(layer_, name, std::move(y));
  }

  /// Returns the cache after the pass: each row's new tokens at their positions, as act has stored
  /// them, or rounded by cache=bf16. A slot that no token of its row has reached holds +0, as all
  /// values of an answer must be finite; no query sees it.
  Operand<Math> append(std::string_view name, const Operand<Math>& cache,
                       const Operand<Math>& added) {
    Value<Math> rows{*added.tensor, added.degree};
    if (model_.config.cache == NumberFormat::bf16) {
      const auto bf16 = math_.bf16(added.degree);
      for (Element& v : rows.tensor.data) v = bf16(v);
      rows.degree = kVariable;
    }
    const size_t old = cache.tensor == nullptr ? 0 : extent(*cache.tensor, 1), M = old + L_;
    const size_t slot = extent(rows.tensor, 2) * Q_;
    Shape shape = rows.tensor.shape;
    shape[1] = static_cast<std::int64_t>(M);
    Value<Math> all{Tensor(std::move(shape)), sum(cache.degree, rows.degree)};
    for (size_t b = 0; b < B_; ++b) {
      Element* const to = all.tensor.data.data() + b * M * slot;
      if (old > 0) std::copy_n(cache.tensor->data.data() + b * old * slot, old * slot, to);
      for (size_t i = 0; i < L_; ++i)
        std::copy_n(rows.tensor.data.data() + (b * L_ + i) * slot, slot,
                    to + static_cast<size_t>(pass_.position(b, i)) * slot);
    }
    return pass_.keep(layer_, name, std::move(all));
  }

  size_t visible(size_t b, size_t i) const { return static_cast<size_t>(pass_.position(b, i)) + 1; }

  /// Contracts vectors of each row's kv head with those of the heads that read it. Calls body(b, i,
  /// h, s, step) for token i and head h of row b: their results are s[0], s[step], ...
  template <class Body>
  void contract_heads(const Tensor& queries, const Tensor& cache,
                      Vectors (*vectors_of)(std::span<const Element>, size_t), size_t results,
                      Body&& body) {
    const size_t group = H_ / K_, count = L_ * group;
    pass_.each_row(B_ * K_, count * results, [&](size_t n) {
      const size_t b = n / K_, g = n % K_;
      const std::vector<Element> of_group = of_heads(queries, b, g * group, group);
      const std::vector<Element> cached = of_heads(cache, b, g, 1);
      const std::vector<Element> s =
          math_.contract(vectors_of(cached, results), Vectors::rows_of(of_group, count), 1);
      for (size_t r = 0; r < count; ++r)
        body(b, r / group, g * group + r % group, s.data() + r, count);
    });
  }

  Operand<Math> scores(const Operand<Math>& q, const Operand<Math>& k_cache) {
    const auto scale = math_.score_scale(Q_);
    Shape shape = q.tensor->shape;
    shape[3] = static_cast<std::int64_t>(M_);
    Value<Math> raw{Tensor(shape), product(q.degree, k_cache.degree)};
    Value<Math> score{Tensor(shape), product(raw.degree, scale.degree)};
    if (model_.slopes != nullptr) score.degree = sum(score.degree, kVariable);
    contract_heads(
        *q.tensor, *k_cache.tensor, &Vectors::rows_of, M_,
        [&](size_t b, size_t i, size_t h, const Element* s, size_t step) {
          for (size_t p = 0; p < visible(b, i); ++p) {
            auto value = math_.multiply(s[p * step], scale.value);
            if (model_.slopes != nullptr) {  // ALiBi: a more distant key scores lower
              const std::int64_t distance = static_cast<std::int64_t>(p) - pass_.position(b, i);
              value =
                  math_.add(value, math_.multiply(model_.slopes->data[h], math_.integer(distance)));
            }
            raw.tensor.data[head(b, i, h) * M_ + p] = s[p * step];
            score.tensor.data[head(b, i, h) * M_ + p] = math_.element(value);
          }
        });
    Operand<Math> checkpoint = pass_.keep(layer_, "score", std::move(score));
    pass_.raw(layer_, "score", std::move(raw));
    return checkpoint;
  }

  /// Files max, exp and denom; returns exp and denom.
  std::pair<Operand<Math>, Operand<Math>> softmax(const Operand<Math>& score) {
    const Shape BLH(score.tensor->shape.begin(), score.tensor->shape.end() - 1);
    const Degree of_exp = product(kVariable, kVariable);  // of a score and of the maximum
    Value<Math> exp{Tensor(score.tensor->shape), of_exp};
    Value<Math> max{Tensor(BLH), kVariable}, denom{Tensor(BLH), of_exp};
    const auto of_row = math_.softmax(score.degree);
    pass_.each_row(max.tensor.data.size(), 8 * M_, [&](size_t n) {  // n = (b·L + i)·H + h
      const size_t keys = visible(n / H_ / L_, n / H_ % L_);
      std::tie(max.tensor.data[n], denom.tensor.data[n]) =
          of_row(std::span(score.tensor->data).subspan(n * M_, keys),
                 std::span(exp.tensor.data).subspan(n * M_, keys));
    });
    pass_.keep(layer_, "max", std::move(max));
    Operand<Math> e = pass_.keep(layer_, "exp", std::move(exp));
    return {std::move(e), pass_.keep(layer_, "denom", std::move(denom))};
  }

  /// Computes the values' weighted mean. A masked key's exp is +0, which adds nothing to an exact
  /// sum.
  Operand<Math> mean(const Operand<Math>& exp, const Operand<Math>& denom,
                     const Operand<Math>& v_cache) {
    Shape shape = exp.tensor->shape;
    shape[3] = v_cache.tensor->shape[3];
    Value<Math> raw{Tensor(shape), product(exp.degree, v_cache.degree)};
    Value<Math> attn{Tensor(shape), over(raw.degree, layer_)};
    const auto divisors = math_.divisors(layer_, pass_.id(layer_, "denom"), *denom.tensor);
    contract_heads(*exp.tensor, *v_cache.tensor, &Vectors::columns_of, Q_,
                   [&](size_t b, size_t i, size_t h, const Element* s, size_t step) {
                     const size_t at = head(b, i, h);
                     for (size_t d = 0; d < Q_; ++d) {
                       raw.tensor.data[at * Q_ + d] = s[d * step];
                       attn.tensor.data[at * Q_ + d] =
                           math_.element(math_.divide(s[d * step], divisors[at]));
                     }
                   });
    Operand<Math> checkpoint = pass_.store(layer_, "attn", std::move(attn));
    pass_.raw(layer_, "attn", std::move(raw));
    return checkpoint;
  }

  size_t head(size_t b, size_t i, size_t h) const { return (b * L_ + i) * H_ + h; }

  Pass<Math>& pass_;
  const Model<Math>& model_;
  const Math& math_;
  int layer_;
  size_t B_ = static_cast<size_t>(pass_.batch()), L_ = static_cast<size_t>(pass_.length());
  size_t H_ = static_cast<size_t>(model_.config.H), K_ = static_cast<size_t>(model_.config.K);
  size_t Q_ = static_cast<size_t>(model_.config.Q), M_ = 0;
};

}  // namespace shardproof::oracle
