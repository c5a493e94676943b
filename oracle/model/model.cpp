#include "oracle/model/model.h"

#include <string>
#include <utility>

#include "weights/model/registry.h"

namespace shardproof::oracle {

namespace {

using std::size_t;

/// Reads the weights by name.
class Reader {
 public:
  explicit Reader(const Weights& weights) : weights_(weights) {}

  bool has(const std::string& name) const { return weights_.all().contains(name); }

  const Tensor& tensor(const std::string& name) const { return weights_.at(name); }

  const Tensor* tensor_if_any(const std::string& name) const {
    return has(name) ? &tensor(name) : nullptr;
  }

  NormWeights norm(const std::string& name) const {
    return {&tensor(name), tensor_if_any(name + "_bias")};
  }

  /// Stacks the matrices called `names`, `outputs` columns wide, as one contraction.
  Matrix matrix(const std::vector<std::string>& names, std::int64_t outputs,
                const std::string& scale, const std::vector<std::string>& biases) const {
    Matrix m{columns(names, static_cast<size_t>(outputs)), tensor_if_any(scale), {}};
    for (const std::string& name : biases)
      if (has(name)) m.biases.push_back(&tensor(name));
    return m;
  }

 private:
  Vectors columns(const std::vector<std::string>& names, size_t outputs) const {
    if (names.size() == 1) return Vectors::columns_of(tensor(names[0]).data, outputs);
    std::vector<float> rows;
    for (const std::string& name : names) {
      const Tensor& t = tensor(name);
      rows.insert(rows.end(), t.data.begin(), t.data.end());
    }
    return Vectors::columns_of(std::move(rows), outputs);
  }

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

}  // namespace

Model::Model(const Weights& weights)
    : config(weights.config()),
      table(Reader(weights).tensor("embed")),
      final_norm(Reader(weights).norm("final_norm")),
      unembed(Vectors::rows_of(config.tied ? table.data : Reader(weights).tensor("unembed").data,
                               static_cast<size_t>(config.V))),
      unembed_bias(Reader(weights).tensor_if_any("unembed_bias")),
      cos(Reader(weights).tensor_if_any("rope_cos")),
      sin(Reader(weights).tensor_if_any("rope_sin")),
      slopes(Reader(weights).tensor_if_any("alibi_slopes")) {
  const Reader read(weights);
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    layers.push_back(layer_weights(read, config, layer));
}

}  // namespace shardproof::oracle
