#include "oracle/model/detail/block.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oracle/numeric/contract.h"
#include "oracle/numeric/detail/constants.h"
#include "oracle/numeric/detail/functions.h"
#include "oracle/numeric/exact_sum.h"
#include "weights/model/registry.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

size_t extent(const Tensor& t, size_t dim) { return static_cast<size_t>(t.shape[dim]); }

/// Element [b, i, h, q] of a row-major tensor of four dims.
float at(const Tensor& t, size_t b, size_t i, size_t h, size_t q) {
  return t.data[((b * extent(t, 1) + i) * extent(t, 2) + h) * extent(t, 3) + q];
}
float& at(Tensor& t, size_t b, size_t i, size_t h, size_t q) {
  return t.data[((b * extent(t, 1) + i) * extent(t, 2) + h) * extent(t, 3) + q];
}

/// Concatenates the rows of several inputs, each B x L x ...: one row per position.
Vectors side_by_side(const std::vector<const Tensor*>& inputs, size_t positions) {
  if (inputs.size() == 1) return Vectors::rows_of(inputs[0]->data, positions);
  std::vector<float> rows;
  for (size_t row = 0; row < positions; ++row)
    for (const Tensor* const input : inputs) {
      const size_t width = input->data.size() / positions;
      const auto begin = input->data.begin() + static_cast<std::ptrdiff_t>(row * width);
      rows.insert(rows.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    }
  return Vectors::rows_of(std::move(rows), positions);
}

/// Computes y = S(inputs, w), times the int8 scale, plus the biases: B x L x `channels`. Several
/// inputs, each B x L x ..., are the terms of one contraction.
const Tensor& project(Pass& pass, int layer, std::string_view name,
                      const std::vector<const Tensor*>& inputs, const Matrix& w,
                      const Shape& channels) {
  const auto positions = static_cast<size_t>(pass.batch() * pass.length());
  Tensor s;
  s.shape = {pass.batch(), pass.length()};
  s.shape.insert(s.shape.end(), channels.begin(), channels.end());
  s.data = contract(side_by_side(inputs, positions), w.columns, pass.threads());
  if (w.scales == nullptr && w.biases.empty()) return pass.contraction(layer, name, std::move(s));

  Tensor y = s;
  const size_t count = w.columns.count();
  if (w.scales != nullptr) {
    pass.each_element(y.data.size(), [&](size_t n) {
      y.data[n] = static_cast<float>(static_cast<double>(y.data[n]) *
                                     static_cast<double>(w.scales->data[n % count]));
    });
    pass.with_scale(layer, name);
    if (!w.biases.empty()) pass.scaled(layer, name, y);
  }
  if (!w.biases.empty())
    pass.each_element(y.data.size(), [&](size_t n) {
      for (const Tensor* const bias : w.biases) y.data[n] = y.data[n] + bias->data[n % count];
    });
  const Tensor& checkpoint = pass.store(layer, name, std::move(y));
  pass.raw(layer, name, std::move(s));
  return checkpoint;
}

const Tensor& add(Pass& pass, int layer, std::string_view name, const Tensor& x, const Tensor& y) {
  Tensor sum(x.shape);
  pass.each_element(sum.data.size(), [&](size_t n) { sum.data[n] = x.data[n] + y.data[n]; });
  return pass.store(layer, name, std::move(sum));
}

/// Computes q_rot or k_rot: rotates the pairs of each head's first 2·J channels, J the table's
/// width.
const Tensor& rotate(Pass& pass, int layer, std::string_view name, const Tensor& x,
                     const Model& model) {
  const size_t pairs = extent(*model.cos, 1);
  const bool half = model.config.rope == Rope::half;
  const size_t L = extent(x, 1), H = extent(x, 2), Q = extent(x, 3);
  Tensor y = x;
  pass.each_row(extent(x, 0) * L, H * Q, [&](size_t row) {  // b·L + i
    const auto position = static_cast<size_t>(pass.position(row / L, row % L));
    for (size_t h = 0; h < H; ++h) {
      const float* const from = x.data.data() + (row * H + h) * Q;
      float* const to = y.data.data() + (row * H + h) * Q;
      for (size_t j = 0; j < pairs; ++j) {
        const double c = model.cos->data[position * pairs + j];
        const double s = model.sin->data[position * pairs + j];
        const size_t first = half ? j : 2 * j;
        const size_t second = half ? j + pairs : 2 * j + 1;
        const double a = from[first];
        const double d = from[second];
        to[first] = static_cast<float>(a * c - d * s);
        to[second] = static_cast<float>(d * c + a * s);
      }
    }
  });
  return pass.store(layer, name, std::move(y));
}

/// Returns the cached form of k_rot or v: as act has stored it, or rounded by cache=bf16.
Tensor cached(Tensor added, const ModelConfig& config) {
  if (config.cache == CacheType::bf16)
    for (float& v : added.data) v = bf16(v);
  return added;
}

/// Returns the cache after the pass: each row's new tokens at their positions. A slot that no token
/// of its row has reached holds +0, as all values of an answer must be finite; no query sees it.
Tensor append(const Pass& pass, const Tensor& cache, const Tensor& added) {
  const size_t old_length = cache.data.empty() ? 0 : extent(cache, 1);
  Tensor all({added.shape[0], static_cast<std::int64_t>(old_length) + added.shape[1],
              added.shape[2], added.shape[3]});
  for (size_t b = 0; b < extent(all, 0); ++b) {
    for (size_t p = 0; p < old_length; ++p)
      for (size_t g = 0; g < extent(all, 2); ++g)
        for (size_t q = 0; q < extent(all, 3); ++q) at(all, b, p, g, q) = at(cache, b, p, g, q);
    for (size_t i = 0; i < extent(added, 1); ++i)
      for (size_t g = 0; g < extent(all, 2); ++g)
        for (size_t q = 0; q < extent(all, 3); ++q)
          at(all, b, static_cast<size_t>(pass.position(b, i)), g, q) = at(added, b, i, g, q);
  }
  return all;
}

/// The causal mask: a query at position p sees the keys 0 ... p of its row, and head h reads kv
/// head h·K/H, so that the heads of kv head g are H/K neighbours.
struct CausalMask {
  CausalMask(const Pass& of, const Tensor& q, const Tensor& cache)
      : pass(of),
        B(extent(q, 0)),
        L(extent(q, 1)),
        Q(extent(q, 3)),
        M(extent(cache, 1)),
        K(extent(cache, 2)),
        group(extent(q, 2) / K) {}

  const Pass& pass;
  size_t B, L, Q, M, K, group;

  size_t visible(size_t b, size_t i) const { return static_cast<size_t>(pass.position(b, i)) + 1; }
  /// Number of queries that read kv head g, and query r of them as (i, h), 0 <= r < L·H/K.
  size_t queries() const { return L * group; }
  std::pair<size_t, size_t> query(size_t g, size_t r) const {
    return {r / group, g * group + r % group};
  }
};

/// Copies the vectors of q, k_cache, v_cache or exp of one batch row for the heads of one kv head:
/// for each token or slot `heads` neighbours from head `first` on, each `width` long.
std::vector<float> of_heads(const Tensor& t, size_t b, size_t first, size_t heads) {
  const size_t tokens = extent(t, 1), all_heads = extent(t, 2), width = extent(t, 3);
  std::vector<float> vectors;
  vectors.reserve(tokens * heads * width);
  for (size_t i = 0; i < tokens; ++i) {
    const float* const begin = &t.data[((b * tokens + i) * all_heads + first) * width];
    vectors.insert(vectors.end(), begin, begin + heads * width);
  }
  return vectors;
}

const Tensor& scores(Pass& pass, int layer, const CausalMask& mask, const Tensor& q,
                     const Tensor& k_cache, const Model& model) {
  Tensor raw({q.shape[0], q.shape[1], q.shape[2], k_cache.shape[1]});
  Tensor score(raw.shape);
  const double scale = Constants(model.config).of_scores(mask.Q);
  pass.each_row(mask.B * mask.K, mask.queries() * mask.M, [&](size_t n) {
    const size_t b = n / mask.K, g = n % mask.K;
    const Vectors queries =
        Vectors::rows_of(of_heads(q, b, g * mask.group, mask.group), mask.queries());
    const Vectors keys = Vectors::rows_of(of_heads(k_cache, b, g, 1), mask.M);
    const std::vector<float> s = contract(keys, queries);
    for (size_t r = 0; r < mask.queries(); ++r) {
      const auto [i, h] = mask.query(g, r);
      for (size_t p = 0; p < mask.visible(b, i); ++p) {
        const float sum = s[p * mask.queries() + r];
        at(raw, b, i, h, p) = sum;
        double value = static_cast<double>(sum) * scale;
        if (model.slopes != nullptr) {  // ALiBi: a more distant key scores lower
          const double distance = static_cast<double>(p) - static_cast<double>(pass.position(b, i));
          value = value + static_cast<double>(model.slopes->data[h]) * distance;
        }
        at(score, b, i, h, p) = static_cast<float>(value);
      }
    }
  });
  const Tensor& checkpoint = pass.keep(layer, "score", std::move(score));
  pass.raw(layer, "score", std::move(raw));
  return checkpoint;
}

/// Files max, exp and denom; returns exp and denom.
std::pair<const Tensor&, const Tensor&> softmax(Pass& pass, int layer, const CausalMask& mask,
                                                const Tensor& score, bool base2) {
  const size_t H = extent(score, 2);
  Tensor exp(score.shape);
  Tensor max({score.shape[0], score.shape[1], score.shape[2]});
  Tensor denom(max.shape);
  pass.each_row(max.data.size(), 8 * mask.M, [&](size_t n) {  // n = (b·L + i)·H + h
    const size_t visible = mask.visible(n / H / mask.L, n / H % mask.L);
    const std::span<const float> s{score.data.data() + n * mask.M, visible};
    const std::span<float> e{exp.data.data() + n * mask.M, visible};
    const float m = *std::max_element(s.begin(), s.end());  // the first of equal ones
    for (size_t p = 0; p < visible; ++p) e[p] = base2 ? exp2_of(s[p] - m) : exp_of(s[p] - m);
    max.data[n] = m;
    denom.data[n] = sum_of(e);
  });
  pass.keep(layer, "max", std::move(max));
  const Tensor& e = pass.keep(layer, "exp", std::move(exp));
  return {e, pass.keep(layer, "denom", std::move(denom))};
}

/// Computes the values' weighted mean. A masked key's exp is +0, which adds nothing to an exact
/// sum.
const Tensor& mean(Pass& pass, int layer, const CausalMask& mask, const Tensor& exp,
                   const Tensor& denom, const Tensor& v_cache) {
  Tensor raw({exp.shape[0], exp.shape[1], exp.shape[2], v_cache.shape[3]});
  Tensor attn(raw.shape);
  const size_t H = extent(exp, 2);
  pass.each_row(mask.B * mask.K, mask.queries() * mask.Q, [&](size_t n) {
    const size_t b = n / mask.K, g = n % mask.K;
    const Vectors weights =
        Vectors::rows_of(of_heads(exp, b, g * mask.group, mask.group), mask.queries());
    const Vectors values = Vectors::columns_of(of_heads(v_cache, b, g, 1), mask.Q);
    const std::vector<float> s = contract(values, weights);
    for (size_t r = 0; r < mask.queries(); ++r) {
      const auto [i, h] = mask.query(g, r);
      const double z = denom.data[(b * mask.L + i) * H + h];
      for (size_t d = 0; d < mask.Q; ++d) {
        const float sum = s[d * mask.queries() + r];
        at(raw, b, i, h, d) = sum;
        at(attn, b, i, h, d) = static_cast<float>(static_cast<double>(sum) / z);
      }
    }
  });
  const Tensor& checkpoint = pass.store(layer, "attn", std::move(attn));
  pass.raw(layer, "attn", std::move(raw));
  return checkpoint;
}

const Tensor& attention(Pass& pass, int layer, const Tensor& x, const Model& model, Cache& cache) {
  const ModelConfig& c = model.config;
  const LayerWeights& w = model.layers[static_cast<size_t>(layer)];
  const Tensor* q = &project(pass, layer, "q", {&x}, w.q, {c.H, c.Q});
  const Tensor* k = &project(pass, layer, "k", {&x}, w.k, {c.K, c.Q});
  const Tensor& v = project(pass, layer, "v", {&x}, w.v, {c.K, c.Q});
  if (rotates(c)) {
    q = &rotate(pass, layer, "q_rot", *q, model);
    k = &rotate(pass, layer, "k_rot", *k, model);
  }
  cache.k = pass.keep(layer, "k_cache", append(pass, cache.k, cached(*k, c)));
  cache.v = pass.keep(layer, "v_cache", append(pass, cache.v, cached(v, c)));
  const CausalMask mask(pass, *q, cache.k);
  const Tensor& score = scores(pass, layer, mask, *q, cache.k, model);
  const auto [exp, denom] = softmax(pass, layer, mask, score, Constants(c).base2);
  return mean(pass, layer, mask, exp, denom, cache.v);
}

float activation(const ModelConfig& config, float v) {
  switch (config.ffn) {
    case Ffn::swiglu:
      return config.softmax == Softmax::base2 ? swish2(v) : swish(v);
    case Ffn::geglu:
    case Ffn::gelu:
      return gelu(v);
    case Ffn::gelu_erf:
      return gelu_erf(v);
  }
  return v;
}

const Tensor& ffn(Pass& pass, int layer, const Tensor& x, const Model& model) {
  const ModelConfig& c = model.config;
  const LayerWeights& w = model.layers[static_cast<size_t>(layer)];
  const Tensor& gate = project(pass, layer, "gate", {&x}, w.gate, {c.F});
  const Tensor* const up = w.up ? &project(pass, layer, "up", {&x}, *w.up, {c.F}) : nullptr;
  Tensor hidden(gate.shape);
  pass.each_row(extent(x, 0) * extent(x, 1), 8 * static_cast<size_t>(c.F), [&](size_t row) {
    const auto F = static_cast<size_t>(c.F);
    for (size_t n = row * F; n < (row + 1) * F; ++n) {
      const float activated = activation(c, gate.data[n]);
      hidden.data[n] = up != nullptr ? activated * up->data[n] : activated;
    }
  });
  return pass.store(layer, "hidden", std::move(hidden));
}

}  // namespace

const Tensor& norm(Pass& pass, int layer, std::string_view name, const Tensor& x,
                   const NormWeights& weights, const ModelConfig& config) {
  const size_t E = extent(x, 2);
  const auto row_of = [E](const Tensor& t, size_t row) {
    return std::span<const float>(t.data).subspan(row * E, E);
  };
  // Each statistic is filed before the next one uses it, so that an overflow is reported by the
  // name of the statistic in which it occurred.
  const auto stat = [&](std::string_view statistic, Tensor value) {
    pass.stat(layer, statistic_row(name, statistic).name, std::move(value));
  };
  Tensor d = x, ss({x.shape[0], x.shape[1]});
  if (config.norm == Norm::layernorm) {
    Tensor sum(ss.shape), mu(ss.shape);
    pass.each_row(sum.data.size(), E, [&](size_t row) {
      sum.data[row] = sum_of(row_of(x, row));
      mu.data[row] =
          static_cast<float>(static_cast<double>(sum.data[row]) / static_cast<double>(E));
      for (size_t n = row * E; n < (row + 1) * E; ++n) d.data[n] = x.data[n] - mu.data[row];
    });
    stat("sum", std::move(sum));
    stat("mu", std::move(mu));
    stat("d", d);
  }
  pass.each_row(ss.data.size(), E, [&](size_t row) {
    ss.data[row] = sum_of_products(row_of(d, row), row_of(d, row));
  });
  stat("ss", ss);
  const double eps = Constants(config).eps;
  Tensor y(x.shape);
  pass.each_row(ss.data.size(), E, [&](size_t row) {
    const double r =
        1.0 / std::sqrt(static_cast<double>(ss.data[row]) / static_cast<double>(E) + eps);
    for (size_t e = 0; e < E; ++e) {
      double v =
          static_cast<double>(d.data[row * E + e]) * r * static_cast<double>(weights.gain->data[e]);
      if (weights.bias != nullptr) v = v + static_cast<double>(weights.bias->data[e]);
      y.data[row * E + e] = static_cast<float>(v);
    }
  });
  return pass.store(layer, name, std::move(y));
}

const Tensor& block(Pass& pass, int layer, const Tensor& x, const Model& model, Cache& cache) {
  const ModelConfig& c = model.config;
  const LayerWeights& w = model.layers[static_cast<size_t>(layer)];
  const Tensor& n = norm(pass, layer, "norm", x, w.norm, c);
  const Tensor& attn = attention(pass, layer, n, model, cache);
  if (c.block == Block::parallel) {
    const Tensor& hidden = ffn(pass, layer, n, model);
    const Tensor& y = project(pass, layer, "block_out", {&attn, &hidden}, *w.block_out, {c.E});
    return add(pass, layer, "out", x, y);
  }
  const Tensor& attn_out = project(pass, layer, "attn_out", {&attn}, *w.attn_out, {c.E});
  const Tensor& mid = add(pass, layer, "mid", x, attn_out);
  const Tensor& n2 = norm(pass, layer, "norm2", mid, *w.norm2, c);
  const Tensor& hidden = ffn(pass, layer, n2, model);
  const Tensor& ffn_out = project(pass, layer, "ffn_out", {&hidden}, *w.ffn_out, {c.E});
  return add(pass, layer, "out", mid, ffn_out);
}

}  // namespace shardproof::oracle
