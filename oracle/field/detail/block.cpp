#include "oracle/field/detail/block.h"

#include <cstdio>
#include <string>
#include <utility>

#include "oracle/numeric/detail/constants.h"
#include "oracle/numeric/each.h"
#include "weights/model/registry.h"

namespace shardproof::oracle::field {

namespace {

using std::size_t;

/// Returns the name of the norm function: "norm E=96 eps=0x1p-20".
std::string norm_function(const ModelConfig& config) {
  char eps[64];
  std::snprintf(eps, sizeof eps, "%a", Constants(config).eps);
  return "norm E=" + std::to_string(config.E) + " eps=" + eps;
}

Value add(Pass& pass, int layer, std::string_view name, const Value& x, const Value& y) {
  Value z{Tensor(x.tensor.shape), sum(x.degree, y.degree)};
  for (size_t n = 0; n < z.tensor.data.size(); ++n)
    z.tensor.data[n] = pass.math().add(x.tensor.data[n], y.tensor.data[n]);
  return pass.store(layer, name, std::move(z));
}

std::string_view activation(const ModelConfig& config) {
  switch (config.ffn) {
    case Ffn::swiglu:
      return config.softmax == Softmax::base2 ? "swish2" : "swish";
    case Ffn::geglu:
    case Ffn::gelu:
      return "gelu";
    case Ffn::gelu_erf:
      return "gelu_erf";
  }
  return "";
}

Value ffn(Pass& pass, int layer, const Value& n) {
  const ModelConfig& c = pass.config();
  const Value gate =
      project(pass, layer, "gate", {{{n, "w_gate"}}, "w_gate_scale", {"b_gate"}}, {c.F});
  const Function f = pass.function(activation(c), gate.degree);
  Value hidden{gate.tensor, kVariable};
  for (Number& v : hidden.tensor.data) v = f(v);
  if (pass.weight(layer, "w_up") != nullptr) {
    const Value up = project(pass, layer, "up", {{{n, "w_up"}}, "w_up_scale", {"b_up"}}, {c.F});
    for (size_t i = 0; i < hidden.tensor.data.size(); ++i)
      hidden.tensor.data[i] = pass.math().multiply(hidden.tensor.data[i], up.tensor.data[i]);
    hidden.degree = product(hidden.degree, up.degree);
  }
  return pass.store(layer, "hidden", std::move(hidden));
}

}  // namespace

Value norm(Pass& pass, int layer, std::string_view name, const Value& x) {
  const Arithmetic& math = pass.math();
  const ModelConfig& c = pass.config();
  const auto E = static_cast<size_t>(c.E);
  const size_t rows = x.tensor.data.size() / E;
  const auto stat = [&](std::string_view statistic, const Value& value) {
    pass.stat(layer, statistic_row(name, statistic).name, value);
  };
  const Shape BL{x.tensor.shape[0], x.tensor.shape[1]};
  Value d = x;
  if (c.norm == Norm::layernorm) {
    Value total{Tensor(BL), x.degree};
    for (size_t n = 0; n < rows * E; ++n)
      total.tensor.data[n / E] = math.add(total.tensor.data[n / E], x.tensor.data[n]);
    stat("sum", total);
    Value mu = total;
    const Number one_over_E = pass.inverse_extent(layer, statistic_row(name, "mu").name, c.E);
    for (Number& v : mu.tensor.data) v = math.multiply(v, one_over_E);
    stat("mu", mu);
    for (size_t n = 0; n < rows * E; ++n)
      d.tensor.data[n] = math.subtract(x.tensor.data[n], mu.tensor.data[n / E]);
    stat("d", d);
  }
  Value ss{Tensor(BL), product(d.degree, d.degree)};
  for (size_t row = 0; row < rows; ++row) {
    const Number* const of_row = d.tensor.data.data() + row * E;
    ss.tensor.data[row] = math.dot(of_row, of_row, E);
  }
  stat("ss", ss);

  const Function R = pass.function(norm_function(c), ss.degree);
  const Tensor& gain = *pass.weight(layer, name);
  const Tensor* const bias = pass.weight(layer, std::string(name) + "_bias");
  Value y{Tensor(x.tensor.shape), product(product(d.degree, kVariable), kVariable)};
  if (bias != nullptr) y.degree = sum(y.degree, kVariable);
  for (size_t row = 0; row < rows; ++row) {
    const Number r = R(ss.tensor.data[row]);
    for (size_t e = 0; e < E; ++e) {
      Number v = math.multiply(math.multiply(d.tensor.data[row * E + e], r), gain.data[e]);
      if (bias != nullptr) v = math.add(v, bias->data[e]);
      y.tensor.data[row * E + e] = v;
    }
  }
  return pass.store(layer, name, std::move(y));
}

Value project(Pass& pass, int layer, std::string_view name, const Projection& of,
              const Shape& channels) {
  const Arithmetic& math = pass.math();
  const auto rows = static_cast<size_t>(pass.batch() * pass.length());
  Value y;
  y.tensor.shape = {pass.batch(), pass.length()};
  y.tensor.shape.insert(y.tensor.shape.end(), channels.begin(), channels.end());
  y.tensor = Tensor(y.tensor.shape);
  const size_t count = y.tensor.data.size() / rows;
  for (const auto& [input, matrix] : of.terms) {
    const Tensor& w = *pass.weight(layer, matrix);
    const size_t length = w.data.size() / count;  // contracted
    const Number* const inputs = input.tensor.data.data();
    each_row(count, rows * length, pass.threads(), [&](size_t j) {
      std::vector<Number> column(length);
      for (size_t k = 0; k < length; ++k) column[k] = w.data[k * count + j];
      for (size_t row = 0; row < rows; ++row) {
        Number& element = y.tensor.data[row * count + j];
        element = math.add(element, math.dot(inputs + row * length, column.data(), length));
      }
    });
    y.degree = sum(y.degree, product(input.degree, kVariable));
  }
  Value s = y;

  const Tensor* const scale = pass.weight(layer, of.scale);
  if (scale != nullptr) {
    for (size_t n = 0; n < y.tensor.data.size(); ++n)
      y.tensor.data[n] = math.multiply(y.tensor.data[n], scale->data[n % count]);
    y.degree = product(y.degree, kVariable);
    pass.with_scale(layer, name);
  }
  bool biased = false;
  for (const std::string_view bias_name : of.biases) {
    const Tensor* const bias = pass.weight(layer, bias_name);
    if (bias == nullptr) continue;
    if (scale != nullptr && !biased) pass.scaled(layer, name, y);
    biased = true;
    for (size_t n = 0; n < y.tensor.data.size(); ++n)
      y.tensor.data[n] = math.add(y.tensor.data[n], bias->data[n % count]);
    y.degree = sum(y.degree, kVariable);
  }
  Value checkpoint = pass.store(layer, name, std::move(y));
  pass.raw(layer, name, std::move(s));
  return checkpoint;
}

Value block(Pass& pass, int layer, const Value& x, Cache& cache) {
  const ModelConfig& c = pass.config();
  const Value n = norm(pass, layer, "norm", x);
  const Value attn = attention(pass, layer, n, cache);
  if (c.block == Block::parallel) {
    const Value hidden = ffn(pass, layer, n);
    const Value y =
        project(pass, layer, "block_out",
                {{{attn, "wo"}, {hidden, "w_out"}}, "block_out_scale", {"bo", "b_out"}}, {c.E});
    return add(pass, layer, "out", x, y);
  }
  const Value attn_out =
      project(pass, layer, "attn_out", {{{attn, "wo"}}, "wo_scale", {"bo"}}, {c.E});
  const Value mid = add(pass, layer, "mid", x, attn_out);
  const Value n2 = norm(pass, layer, "norm2", mid);
  const Value hidden = ffn(pass, layer, n2);
  const Value ffn_out =
      project(pass, layer, "ffn_out", {{{hidden, "w_out"}}, "w_out_scale", {"b_out"}}, {c.E});
  return add(pass, layer, "out", mid, ffn_out);
}

}  // namespace shardproof::oracle::field
