#include "oracle/model.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string>

#include "oracle/functions.h"
#include "weights/registry.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

/// Reads the weights by name, rounded to bf16 where numerics.weights says so.
class Reader {
 public:
  Reader(const Weights& weights, WeightType type) : weights_(weights), type_(type) {
    for (const WeightSpec& spec : weight_specs(weights.config()))
      if (spec.matrix) matrices_.push_back(spec.name);
  }

  bool has(const std::string& name) const { return weights_.all().contains(name); }

  Tensor tensor(const std::string& name) const {
    Tensor t = weights_.at(name);
    const bool matrix = std::find(matrices_.begin(), matrices_.end(), name) != matrices_.end();
    if (type_ == WeightType::bf16 && matrix)
      for (float& v : t.data) v = bf16(v);
    return t;
  }

  std::optional<Tensor> optional_tensor(const std::string& name) const {
    return has(name) ? std::optional(tensor(name)) : std::nullopt;
  }

  NormWeights norm(const std::string& name) const {
    return {tensor(name), optional_tensor(name + "_bias")};
  }

  /// The matrices called `names` on top of each other, `outputs` columns wide: one contraction.
  Matrix matrix(std::initializer_list<std::string> names, std::int64_t outputs,
                std::initializer_list<std::string> biases) const {
    std::vector<float> rows;
    for (const std::string& name : names) {
      const Tensor t = tensor(name);
      rows.insert(rows.end(), t.data.begin(), t.data.end());
    }
    const auto width = static_cast<size_t>(outputs);
    const size_t contracted = rows.size() / width;
    std::vector<float> scales;
    if (type_ == WeightType::int8) scales = quantize(rows, width);
    Matrix m{Vectors(width, contracted, [&](size_t j, size_t k) { return rows[k * width + j]; }),
             std::move(scales),
             {}};
    for (const std::string& name : biases)
      if (has(name)) m.biases.push_back(tensor(name));
    return m;
  }

 private:
  /// Replaces the weights by their int8 codes and returns each column's scale.
  static std::vector<float> quantize(std::span<float> rows, size_t width) {
    std::vector<float> scales(width);
    for (size_t j = 0; j < width; ++j) {
      double absmax = 0;
      for (size_t at = j; at < rows.size(); at += width)
        absmax = std::max(absmax, std::abs(static_cast<double>(rows[at])));
      scales[j] = static_cast<float>(absmax / 127.0);
      if (scales[j] == 0) scales[j] = 1;
      for (size_t at = j; at < rows.size(); at += width) {
        const double code = std::nearbyint(static_cast<double>(rows[at]) / scales[j]);
        rows[at] = static_cast<float>(std::clamp(code, -127.0, 127.0));
      }
    }
    return scales;
  }

  const Weights& weights_;
  WeightType type_;
  std::vector<std::string> matrices_;
};

LayerWeights layer_weights(const Reader& read, const ModelConfig& c, std::int64_t layer) {
  const auto of = [layer](const char* name) { return weight_id(layer, name); };
  const auto HQ = c.H * c.Q;
  const auto KQ = c.K * c.Q;
  LayerWeights w{
      .norm = read.norm(of("norm")),
      .norm2 = {},
      .q = read.matrix({of("wq")}, HQ, {of("bq")}),
      .k = read.matrix({of("wk")}, KQ, {of("bk")}),
      .v = read.matrix({of("wv")}, KQ, {of("bv")}),
      .gate = read.matrix({of("w_gate")}, c.F, {of("b_gate")}),
      .up = {},
      .block_out = {},
      .attn_out = {},
      .ffn_out = {},
  };
  if (read.has(of("w_up"))) w.up = read.matrix({of("w_up")}, c.F, {of("b_up")});
  if (c.block == Block::parallel) {
    w.block_out = read.matrix({of("wo"), of("w_out")}, c.E, {of("bo"), of("b_out")});
  } else {
    w.norm2 = read.norm(of("norm2"));
    w.attn_out = read.matrix({of("wo")}, c.E, {of("bo")});
    w.ffn_out = read.matrix({of("w_out")}, c.E, {of("b_out")});
  }
  return w;
}

Vectors rows_of(const Tensor& t) {
  const auto width = static_cast<size_t>(t.shape.back());
  return {t.data.size() / width, width, [&](size_t i, size_t k) { return t.data[i * width + k]; }};
}

}  // namespace

Model::Model(const Weights& weights, WeightType type)
    : config(weights.config()),
      table(Reader(weights, type).tensor("embed")),
      final_norm(Reader(weights, type).norm("final_norm")),
      unembed(rows_of(config.tied ? table : Reader(weights, type).tensor("unembed"))) {
  const Reader read(weights, type);
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    layers.push_back(layer_weights(read, config, layer));
  cos = read.optional_tensor("rope_cos");
  sin = read.optional_tensor("rope_sin");
}

}  // namespace shardproof::oracle
