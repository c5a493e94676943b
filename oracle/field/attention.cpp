#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "oracle/field/detail/block.h"
#include "oracle/numeric/each.h"

namespace shardproof::oracle::field {

namespace {

using std::size_t;

/// Extents of attention. A query at position t sees the keys 0 ... t of its row, and head h reads
/// kv head h·K/H.
struct Extents {
  Extents(const Pass& of, const Tensor& q, const Tensor& k_cache)
      : pass(of),
        B(static_cast<size_t>(q.shape[0])),
        L(static_cast<size_t>(q.shape[1])),
        H(static_cast<size_t>(q.shape[2])),
        Q(static_cast<size_t>(q.shape[3])),
        M(static_cast<size_t>(k_cache.shape[1])),
        K(static_cast<size_t>(k_cache.shape[2])) {}

  const Pass& pass;
  size_t B, L, H, Q, M, K;

  size_t head(size_t b, size_t i, size_t h) const { return (b * L + i) * H + h; }
  /// Offset of the vector of a slot and kv head.
  size_t slot(size_t b, size_t p, size_t kv) const { return ((b * M + p) * K + kv) * Q; }
  size_t kv_head(size_t h) const { return h * K / H; }
  size_t visible(size_t b, size_t i) const { return static_cast<size_t>(pass.position(b, i)) + 1; }
};

/// Computes q_rot or k_rot of x, B x L x heads x Q: rotates the pairs of each head's first 2·J
/// channels.
Value rotate(Pass& pass, int layer, std::string_view name, const Value& x) {
  const Arithmetic& math = pass.math();
  const Tensor& cos = *pass.weight(-1, "rope_cos");
  const Tensor& sin = *pass.weight(-1, "rope_sin");
  const auto J = static_cast<size_t>(cos.shape[1]);
  const auto L = static_cast<size_t>(x.tensor.shape[1]);
  const auto heads = static_cast<size_t>(x.tensor.shape[2]);
  const auto Q = static_cast<size_t>(x.tensor.shape[3]);
  const bool half = pass.config().rope == Rope::half;
  Value y{x.tensor, J == 0 ? x.degree : product(x.degree, kVariable)};
  for (size_t vector = 0; vector * Q < x.tensor.data.size(); ++vector) {  // (b·L + i)·heads + h
    const size_t token = vector / heads;
    const auto position = static_cast<size_t>(pass.position(token / L, token % L));
    for (size_t j = 0; j < J; ++j) {
      const size_t first = vector * Q + (half ? j : 2 * j);
      const size_t second = vector * Q + (half ? j + J : 2 * j + 1);
      const Number a = x.tensor.data[first], b = x.tensor.data[second];
      const Number c = cos.data[position * J + j], s = sin.data[position * J + j];
      y.tensor.data[first] = math.subtract(math.multiply(a, c), math.multiply(b, s));
      y.tensor.data[second] = math.add(math.multiply(b, c), math.multiply(a, s));
    }
  }
  return pass.store(layer, name, std::move(y));
}

/// Returns the cache after the pass: the previous cache, and each row's new tokens at their
/// positions, through the function bf16 if cache=bf16. Other new slots hold 0.
Value append(Pass& pass, const Value& cache, Value added) {
  if (pass.config().cache == CacheType::bf16) {
    const Function bf16 = pass.function("bf16", added.degree);
    for (Number& v : added.tensor.data) v = bf16(v);
    added.degree = kVariable;
  }
  const std::int64_t old = cache.tensor.data.empty() ? 0 : cache.tensor.shape[1];
  const auto B = static_cast<size_t>(added.tensor.shape[0]);
  const auto L = static_cast<size_t>(added.tensor.shape[1]);
  const auto width = static_cast<size_t>(added.tensor.shape[2] * added.tensor.shape[3]);
  Value all{Tensor({added.tensor.shape[0], old + added.tensor.shape[1], added.tensor.shape[2],
                    added.tensor.shape[3]}),
            sum(cache.degree, added.degree)};
  const auto M = static_cast<size_t>(all.tensor.shape[1]), before = static_cast<size_t>(old);
  for (size_t b = 0; b < B; ++b) {
    for (size_t n = 0; n < before * width; ++n)
      all.tensor.data[b * M * width + n] = cache.tensor.data[b * before * width + n];
    for (size_t i = 0; i < L; ++i) {
      const auto slot = static_cast<size_t>(pass.position(b, i));
      for (size_t n = 0; n < width; ++n)
        all.tensor.data[(b * M + slot) * width + n] = added.tensor.data[(b * L + i) * width + n];
    }
  }
  return all;
}

Value scores(Pass& pass, int layer, const Extents& x, const Value& q, const Value& k_cache) {
  const Arithmetic& math = pass.math();
  const bool base2 = pass.config().softmax == shardproof::Softmax::base2;  // wq includes the scale
  const Number scale =
      base2 ? math.integer(1) : pass.constant(fmt::format("attend_scale Q={}", x.Q));
  const Tensor* const slopes = pass.weight(-1, "alibi_slopes");
  Value raw{
      Tensor({q.tensor.shape[0], q.tensor.shape[1], q.tensor.shape[2], k_cache.tensor.shape[1]}),
      product(q.degree, k_cache.degree)};
  Value score{raw.tensor, base2 ? raw.degree : product(raw.degree, kVariable)};
  if (slopes != nullptr) score.degree = sum(score.degree, kVariable);
  each_row(x.B, x.L * x.H * x.M * x.Q, pass.threads(), [&](size_t b) {
    for (size_t i = 0; i < x.L; ++i)
      for (size_t h = 0; h < x.H; ++h)
        for (size_t p = 0; p < x.visible(b, i); ++p) {
          const size_t n = x.head(b, i, h);
          const Number s = math.dot(&q.tensor.data[n * x.Q],
                                    &k_cache.tensor.data[x.slot(b, p, x.kv_head(h))], x.Q);
          Number value = math.multiply(s, scale);
          if (slopes != nullptr) {
            const std::int64_t distance = static_cast<std::int64_t>(p) - pass.position(b, i);
            value = math.add(value, math.multiply(slopes->data[h], math.integer(distance)));
          }
          raw.tensor.data[n * x.M + p] = s;
          score.tensor.data[n * x.M + p] = value;
        }
  });
  Value checkpoint = pass.keep(layer, "score", std::move(score));
  pass.raw(layer, "score", std::move(raw));
  return checkpoint;
}

struct Softmax {
  Value exp, denom;
};

/// Models a maximum as a sum over the keys, and e^(s−m) as a product of a function of each.
Softmax softmax(Pass& pass, int layer, const Extents& x, const Value& score) {
  const Arithmetic& math = pass.math();
  const Shape BLH(score.tensor.shape.begin(), score.tensor.shape.end() - 1);
  Value max{Tensor(BLH), kVariable}, denom{Tensor(BLH), product(kVariable, kVariable)};
  Value exp{Tensor(score.tensor.shape), product(kVariable, kVariable)};
  const Function X = pass.function("score to max", score.degree);
  const bool base2 = pass.config().softmax == shardproof::Softmax::base2;
  const Function G = pass.function(base2 ? "score to exp2" : "score to exp", score.degree);
  const Function J = pass.function(base2 ? "max to exp2" : "max to exp", max.degree);
  for (size_t b = 0; b < x.B; ++b)
    for (size_t i = 0; i < x.L; ++i)
      for (size_t h = 0; h < x.H; ++h) {
        const size_t n = x.head(b, i, h);
        const Number* const s = &score.tensor.data[n * x.M];
        Number* const e = &exp.tensor.data[n * x.M];
        Number& m = max.tensor.data[n];
        Number& z = denom.tensor.data[n];
        for (size_t p = 0; p < x.visible(b, i); ++p) m = math.add(m, X(s[p]));
        const Number of_max = J(m);
        for (size_t p = 0; p < x.visible(b, i); ++p) {
          e[p] = math.multiply(G(s[p]), of_max);
          z = math.add(z, e[p]);
        }
      }
  pass.keep(layer, "max", std::move(max));
  Softmax result;
  result.exp = pass.keep(layer, "exp", std::move(exp));
  result.denom = pass.keep(layer, "denom", std::move(denom));
  return result;
}

/// Computes Σ exp·v / denom; exp of a masked key is 0.
Value mean(Pass& pass, int layer, const Extents& x, const Softmax& of, const Value& v_cache) {
  const Arithmetic& math = pass.math();
  Value raw{Tensor({of.exp.tensor.shape[0], of.exp.tensor.shape[1], of.exp.tensor.shape[2],
                    v_cache.tensor.shape[3]}),
            product(of.exp.degree, v_cache.degree)};
  Value attn{raw.tensor, over(raw.degree, layer)};
  each_row(x.B, x.L * x.H * x.M * x.Q, pass.threads(), [&](size_t b) {
    std::vector<Number> channel(x.M);  // of one row and kv head
    for (size_t h = 0; h < x.H; ++h)
      for (size_t d = 0; d < x.Q; ++d) {
        for (size_t p = 0; p < x.M; ++p)
          channel[p] = v_cache.tensor.data[x.slot(b, p, x.kv_head(h)) + d];
        for (size_t i = 0; i < x.L; ++i) {
          const size_t n = x.head(b, i, h);
          raw.tensor.data[n * x.Q + d] =
              math.dot(&of.exp.tensor.data[n * x.M], channel.data(), x.M);
        }
      }
  });
  for (size_t n = 0; n < of.denom.tensor.data.size(); ++n) {
    const Number inverse = pass.inverse_denom(layer, of.denom.tensor, n);
    for (size_t d = 0; d < x.Q; ++d)
      attn.tensor.data[n * x.Q + d] = math.multiply(raw.tensor.data[n * x.Q + d], inverse);
  }
  Value checkpoint = pass.store(layer, "attn", std::move(attn));
  pass.raw(layer, "attn", std::move(raw));
  return checkpoint;
}

}  // namespace

Value attention(Pass& pass, int layer, const Value& n, Cache& cache) {
  const ModelConfig& c = pass.config();
  Value q = project(pass, layer, "q", {{{n, "wq"}}, "wq_scale", {"bq"}}, {c.H, c.Q});
  Value k = project(pass, layer, "k", {{{n, "wk"}}, "wk_scale", {"bk"}}, {c.K, c.Q});
  Value v = project(pass, layer, "v", {{{n, "wv"}}, "wv_scale", {"bv"}}, {c.K, c.Q});
  if (rotates(c)) {
    q = rotate(pass, layer, "q_rot", q);
    k = rotate(pass, layer, "k_rot", k);
  }
  cache.k = pass.keep(layer, "k_cache", append(pass, cache.k, std::move(k)));
  cache.v = pass.keep(layer, "v_cache", append(pass, cache.v, std::move(v)));
  const Extents extents(pass, q.tensor, cache.k.tensor);
  const Value score = scores(pass, layer, extents, q, cache.k);
  return mean(pass, layer, extents, softmax(pass, layer, extents, score), cache.v);
}

}  // namespace shardproof::oracle::field
