#include "oracle/model.h"

#include <initializer_list>
#include <string>

#include "weights/registry.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

/// Reads the weights by name.
class Reader {
 public:
  explicit Reader(const Weights& weights) : weights_(weights) {}

  bool has(const std::string& name) const { return weights_.all().contains(name); }

  const Tensor& tensor(const std::string& name) const { return weights_.at(name); }

  std::optional<Tensor> optional_tensor(const std::string& name) const {
    return has(name) ? std::optional(tensor(name)) : std::nullopt;
  }

  NormWeights norm(const std::string& name) const {
    return {tensor(name), optional_tensor(name + "_bias")};
  }

  /// The matrices called `names` on top of each other, `outputs` columns wide: one contraction.
  Matrix matrix(std::initializer_list<std::string> names, std::int64_t outputs,
                const std::string& scale, std::initializer_list<std::string> biases) const {
    std::vector<float> rows;
    for (const std::string& name : names) {
      const Tensor& t = tensor(name);
      rows.insert(rows.end(), t.data.begin(), t.data.end());
    }
    const auto width = static_cast<size_t>(outputs);
    const size_t contracted = rows.size() / width;
    Matrix m{Vectors(width, contracted, [&](size_t j, size_t k) { return rows[k * width + j]; }),
             has(scale) ? tensor(scale).data : std::vector<float>(),
             {}};
    for (const std::string& name : biases)
      if (has(name)) m.biases.push_back(tensor(name));
    return m;
  }

 private:
  const Weights& weights_;
};

LayerWeights layer_weights(const Reader& read, const ModelConfig& c, std::int64_t layer) {
  const auto of = [layer](const char* name) { return weight_id(layer, name); };
  const auto HQ = c.H * c.Q;
  const auto KQ = c.K * c.Q;
  LayerWeights w{
      .norm = read.norm(of("norm")),
      .norm2 = {},
      .q = read.matrix({of("wq")}, HQ, of("wq_scale"), {of("bq")}),
      .k = read.matrix({of("wk")}, KQ, of("wk_scale"), {of("bk")}),
      .v = read.matrix({of("wv")}, KQ, of("wv_scale"), {of("bv")}),
      .gate = read.matrix({of("w_gate")}, c.F, of("w_gate_scale"), {of("b_gate")}),
      .up = {},
      .block_out = {},
      .attn_out = {},
      .ffn_out = {},
  };
  if (read.has(of("w_up"))) w.up = read.matrix({of("w_up")}, c.F, of("w_up_scale"), {of("b_up")});
  if (c.block == Block::parallel) {
    w.block_out =
        read.matrix({of("wo"), of("w_out")}, c.E, of("block_out_scale"), {of("bo"), of("b_out")});
  } else {
    w.norm2 = read.norm(of("norm2"));
    w.attn_out = read.matrix({of("wo")}, c.E, of("wo_scale"), {of("bo")});
    w.ffn_out = read.matrix({of("w_out")}, c.E, of("w_out_scale"), {of("b_out")});
  }
  return w;
}

Vectors rows_of(const Tensor& t) {
  const auto width = static_cast<size_t>(t.shape.back());
  return {t.data.size() / width, width, [&](size_t i, size_t k) { return t.data[i * width + k]; }};
}

}  // namespace

Model::Model(const Weights& weights)
    : config(weights.config()),
      table(Reader(weights).tensor("embed")),
      final_norm(Reader(weights).norm("final_norm")),
      unembed(rows_of(config.tied ? table : Reader(weights).tensor("unembed"))) {
  const Reader read(weights);
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    layers.push_back(layer_weights(read, config, layer));
  cos = read.optional_tensor("rope_cos");
  sin = read.optional_tensor("rope_sin");
  slopes = read.optional_tensor("alibi_slopes");
  unembed_bias = read.optional_tensor("unembed_bias");
}

}  // namespace shardproof::oracle
