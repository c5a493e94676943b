#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/formulas/detail/attention.h"
#include "oracle/formulas/detail/model.h"
#include "oracle/formulas/detail/pass.h"

namespace shardproof::oracle {

/// One layer in one pass; with a negative layer, what stands before and behind the layers.
template <class Math>
class Layer {
 public:
  using size_t = std::size_t;
  using Element = typename Math::Element;
  using Vectors = typename Math::Vectors;
  using Tensor = TensorOf<Math>;
  using Matrix = typename Model<Math>::Matrix;
  using NormWeights = typename Model<Math>::NormWeights;

  Layer(Pass<Math>& pass, const Model<Math>& model, int layer)
      : pass_(pass),
        model_(model),
        math_(pass.math()),
        layer_(layer),
        weights_(layer < 0 ? nullptr : model.layer(layer)) {}

  Operand<Math> embed(const IntTensor& ids) {
    const auto scale = math_.embed_scale();
    Value<Math> rows{Tensor({pass_.batch(), pass_.length(), model_.config.E}), kVariable};
    const auto table = model_.table();
    for (size_t n = 0; n < rows.tensor.data.size(); ++n) {
      const Element v = table->data[static_cast<size_t>(ids.data[n / E_]) * E_ + n % E_];
      // Adding +0 turns the table's -0 into +0, as a sum over its shards does.
      rows.tensor.data[n] = math_.element(math_.add(v, math_.integer(0)));
    }
    Value<Math> x{rows.tensor, product(rows.degree, scale.degree)};
    for (Element& v : x.tensor.data) v = math_.element(math_.multiply(v, scale.value));
    Operand<Math> checkpoint = pass_.store(layer_, "embed", std::move(x));
    pass_.raw(layer_, "embed", std::move(rows));
    return checkpoint;
  }

  /// Runs the layer from the block's input, B x L x E, to its `out`; extends the cache.
  Operand<Math> block(const Operand<Math>& x, Cache<Math>& cache) {
    const auto& w = *weights_;
    const std::int64_t E = model_.config.E;
    const Operand<Math> n = norm("norm", x, w.norm);
    const Operand<Math> attn = attention(n, cache);
    if (model_.config.block == Block::parallel)
      return add("out", x, project("block_out", {attn, ffn(n)}, *w.block_out, {E}));
    const Operand<Math> mid = add("mid", x, project("attn_out", {attn}, *w.attn_out, {E}));
    const Operand<Math> hidden = ffn(norm("norm2", mid, *w.norm2));
    return add("out", mid, project("ffn_out", {hidden}, *w.ffn_out, {E}));
  }

  /// Computes the logits of each row's last token in the pass, from what the layers return.
  Operand<Math> head(const Operand<Math>& of_layers) {
    const auto weights = model_.head();
    const Matrix& unembed = weights->unembed;
    const Operand<Math> x = norm("final_norm", of_layers, weights->norm);
    const auto B = static_cast<size_t>(pass_.batch()), L = static_cast<size_t>(pass_.length());
    std::vector<Element> last;
    for (size_t b = 0; b < B; ++b) {
      const Element* const row = x.tensor->data.data() + (b * L + pass_.last(b)) * E_;
      last.insert(last.end(), row, row + E_);
    }
    Value<Math> s{{}, product(x.degree, kVariable)};
    s.tensor.shape = {pass_.batch(), model_.config.V};
    s.tensor.data = math_.contract(Vectors::rows_of(last, B), unembed.columns, pass_.threads());
    const auto scale = math_.logit_scale();
    Value<Math> logits{s.tensor, product(s.degree, scale.degree)};
    for (Element& v : logits.tensor.data) v = math_.element(math_.multiply(v, scale.value));
    for (const auto& bias : unembed.biases) {
      pass_.scaled(layer_, "logits", logits);
      add_bias(logits, *bias);
    }
    Operand<Math> checkpoint = pass_.keep(layer_, "logits", std::move(logits));
    pass_.raw(layer_, "logits", std::move(s));
    return checkpoint;
  }

  /// Computes and files a norm checkpoint of x, and its statistics.
  Operand<Math> norm(std::string_view name, const Operand<Math>& of, const NormWeights& weights) {
    const Tensor& x = *of.tensor;
    const Shape BL{x.shape[0], x.shape[1]};
    const auto row_of = [this](const Tensor& t, size_t row) {
      return std::span<const Element>(t.data).subspan(row * E_, E_);
    };
    // Each statistic is filed before the next one uses it, so that an overflow is reported by the
    // name of the statistic in which it occurred.
    const auto stat = [&](std::string_view statistic, Value<Math> value) {
      pass_.stat(layer_, statistic_row(name, statistic).name, std::move(value));
    };
    Value<Math> d{x, of.degree};
    if (model_.config.norm == Norm::layernorm) {
      Value<Math> total{Tensor(BL), of.degree}, mu = total;
      const auto E =
          math_.divisor(pass_.id(layer_, statistic_row(name, "mu").name), model_.config.E);
      pass_.each_row(mu.tensor.data.size(), E_, [&](size_t row) {
        const Element all = math_.sum_of(row_of(x, row));
        const Element mean = math_.element(math_.divide(all, E));
        total.tensor.data[row] = all;
        mu.tensor.data[row] = mean;
        for (size_t n = row * E_; n < (row + 1) * E_; ++n)
          d.tensor.data[n] = math_.element(math_.subtract(x.data[n], mean));
      });
      stat("sum", std::move(total));
      stat("mu", std::move(mu));
      stat("d", d);
    }
    Value<Math> ss{Tensor(BL), product(d.degree, d.degree)};
    pass_.each_row(ss.tensor.data.size(), E_, [&](size_t row) {
      ss.tensor.data[row] = math_.sum_of_squares(row_of(d.tensor, row));
    });
    stat("ss", ss);
    const auto inverse_root = math_.inverse_root(ss.degree);
    Value<Math> y{Tensor(x.shape), product(product(d.degree, kVariable), kVariable)};
    if (weights.bias != nullptr) y.degree = sum(y.degree, kVariable);
    pass_.each_row(ss.tensor.data.size(), E_, [&](size_t row) {
      const auto r = inverse_root(ss.tensor.data[row]);
      for (size_t e = 0; e < E_; ++e) {
        const size_t n = row * E_ + e;
        auto v = math_.multiply(math_.multiply(d.tensor.data[n], r), weights.gain->data[e]);
        if (weights.bias != nullptr) v = math_.add(v, weights.bias->data[e]);
        y.tensor.data[n] = math_.element(v);
      }
    });
    return pass_.store(layer_, name, std::move(y));
  }

 private:
  Operand<Math> attention(const Operand<Math>& x, Cache<Math>& cache) {
    const auto& w = *weights_;
    const ModelConfig& c = model_.config;
    const Operand<Math> q = project("q", {x}, w.q, {c.H, c.Q});
    const Operand<Math> k = project("k", {x}, w.k, {c.K, c.Q});
    const Operand<Math> v = project("v", {x}, w.v, {c.K, c.Q});
    return Attention<Math>(pass_, model_, layer_).attend(q, k, v, cache);
  }

  Operand<Math> ffn(const Operand<Math>& x) {
    const auto& w = *weights_;
    const auto F = static_cast<size_t>(model_.config.F);
    const Operand<Math> gate = project("gate", {x}, w.gate, {model_.config.F});
    Operand<Math> up;
    if (w.up) up = project("up", {x}, *w.up, {model_.config.F});
    const auto activation = math_.activation(gate.degree);
    Value<Math> hidden{Tensor(gate.tensor->shape),
                       w.up ? product(kVariable, up.degree) : kVariable};
    pass_.each_row(hidden.tensor.data.size() / F, 8 * F, [&](size_t row) {
      for (size_t n = row * F; n < (row + 1) * F; ++n) {
        const Element activated = activation(gate.tensor->data[n]);
        hidden.tensor.data[n] =
            w.up ? math_.element(math_.multiply(activated, up.tensor->data[n])) : activated;
      }
    });
    return pass_.store(layer_, "hidden", std::move(hidden));
  }

  /// Computes y = S(inputs, w), times the int8 scale, plus the biases: B x L x `channels`. Several
  /// inputs, each B x L x ..., are the terms of one contraction.
  Operand<Math> project(std::string_view name, const std::vector<Operand<Math>>& inputs,
                        const Matrix& w, const Shape& channels) {
    const auto positions = static_cast<size_t>(pass_.batch() * pass_.length());
    Value<Math> s;
    s.tensor.shape = {pass_.batch(), pass_.length()};
    s.tensor.shape.insert(s.tensor.shape.end(), channels.begin(), channels.end());
    for (const Operand<Math>& input : inputs)
      s.degree = sum(s.degree, product(input.degree, kVariable));
    const std::vector<Element> rows = side_by_side(inputs, positions);
    s.tensor.data = math_.contract(Vectors::rows_of(rows, positions), w.columns, pass_.threads());
    if (w.scales == nullptr && w.biases.empty())
      return pass_.contraction(layer_, name, std::move(s));

    Value<Math> y = s;
    if (w.scales != nullptr) {
      const std::vector<Element>& scales = w.scales->data;
      pass_.each_element(y.tensor.data.size(), [&](size_t n) {
        Element& v = y.tensor.data[n];
        v = math_.element(math_.multiply(v, scales[n % scales.size()]));
      });
      y.degree = product(y.degree, kVariable);
      pass_.with_scale(layer_, name);
      if (!w.biases.empty()) pass_.scaled(layer_, name, y);
    }
    for (const auto& bias : w.biases) add_bias(y, *bias);
    Operand<Math> checkpoint = pass_.store(layer_, name, std::move(y));
    pass_.raw(layer_, name, std::move(s));
    return checkpoint;
  }

  /// Concatenates the rows of several inputs: one row per position.
  static std::vector<Element> side_by_side(const std::vector<Operand<Math>>& inputs,
                                           size_t positions) {
    std::vector<Element> rows;
    for (size_t row = 0; row < positions; ++row)
      for (const Operand<Math>& input : inputs) {
        const size_t width = input.tensor->data.size() / positions;
        const Element* const begin = input.tensor->data.data() + row * width;
        rows.insert(rows.end(), begin, begin + width);
      }
    return rows;
  }

  void add_bias(Value<Math>& y, const Tensor& bias) {
    pass_.each_element(y.tensor.data.size(), [&](size_t n) {
      Element& v = y.tensor.data[n];
      v = math_.element(math_.add(v, bias.data[n % bias.data.size()]));
    });
    y.degree = sum(y.degree, kVariable);
  }

  Operand<Math> add(std::string_view name, const Operand<Math>& x, const Operand<Math>& y) {
    Value<Math> z{*x.tensor, sum(x.degree, y.degree)};
    pass_.each_element(z.tensor.data.size(), [&](size_t n) {
      z.tensor.data[n] = math_.element(math_.add(x.tensor->data[n], y.tensor->data[n]));
    });
    return pass_.store(layer_, name, std::move(z));
  }

  Pass<Math>& pass_;
  const Model<Math>& model_;
  const Math& math_;
  int layer_;
  std::shared_ptr<const typename Model<Math>::LayerWeights>
      weights_;  // null before and behind the layers
  size_t E_ = static_cast<size_t>(model_.config.E);
};

/// Runs one pass through the whole model; returns its logits.
template <class Math>
Operand<Math> forward(Pass<Math>& pass, const Model<Math>& model, const IntTensor& ids,
                      std::vector<Cache<Math>>& caches) {
  Layer<Math> outer(pass, model, -1);
  Operand<Math> x = outer.embed(ids);
  for (std::size_t layer = 0; layer < caches.size(); ++layer)
    x = Layer<Math>(pass, model, static_cast<int>(layer)).block(x, caches[layer]);
  return outer.head(x);
}

}  // namespace shardproof::oracle
