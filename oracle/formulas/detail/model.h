#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "oracle/formulas/detail/value.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/registry.h"

namespace shardproof::oracle {

/// All weights as stored by numerics.weights; null where the model has none.
template <class Math>
class Model {
 public:
  using Tensor = TensorOf<Math>;
  using Vectors = typename Math::Vectors;
  /// Returns the weight of this id, or null.
  using Find = std::function<const Tensor*(const std::string& id)>;

  /// A W matrix, ready for contraction: one column per output channel.
  struct Matrix {
    Vectors columns;                    ///< the weights, or the int8 codes
    const Tensor* scales = nullptr;     ///< int8 only: one per column; otherwise null
    std::vector<const Tensor*> biases;  ///< added in this order
    Tensor stacked = {};                ///< several matrices that form one contraction
  };
  /// The gain of a norm, and its bias if the model has one.
  struct NormWeights {
    const Tensor* gain = nullptr;
    const Tensor* bias = nullptr;
  };
  /// Weights of a layer, named after the checkpoints they produce. A parallel block has block_out,
  /// a serial one norm2, attn_out and ffn_out; a plain FFN has no up.
  struct LayerWeights {
    NormWeights norm;
    std::optional<NormWeights> norm2;
    Matrix q, k, v, gate;
    std::optional<Matrix> up, block_out, attn_out, ffn_out;
  };

  /// Views the weights, which must outlive the Model; only matrices that form one contraction are
  /// copied. Throws Error("weights_name", ...) if there is none that the model needs.
  Model(const ModelConfig& of, const Find& find)
      : config(of),
        table(tensor(find, "embed")),
        final_norm(norm(find, "final_norm")),
        unembed(Vectors::rows_of((of.tied ? table : tensor(find, "unembed")).data,
                                 static_cast<std::size_t>(of.V))),
        unembed_bias(find("unembed_bias")),
        cos(find("rope_cos")),
        sin(find("rope_sin")),
        slopes(find("alibi_slopes")) {
    for (std::int64_t layer = 0; layer < of.layers; ++layer)
      layers.push_back(
          layer_weights([&](const std::string& name) { return find(weight_id(layer, name)); }));
  }

  ModelConfig config;
  const Tensor& table;  ///< V x E
  std::vector<LayerWeights> layers;
  NormWeights final_norm;
  Vectors unembed;             ///< one vector of E per token; unscaled
  const Tensor* unembed_bias;  ///< one per token
  const Tensor *cos, *sin;     ///< position x pair; null without RoPE
  const Tensor* slopes;        ///< ALiBi slopes, one per query head; null without

 private:
  const Tensor& tensor(const Find& find, const std::string& name) const {
    if (const Tensor* const found = find(name)) return *found;
    throw Error("weights_name", fmt::format("{} has no weight {:?}", print_model(config), name));
  }
  NormWeights norm(const Find& find, const std::string& name) const {
    return {&tensor(find, name), find(name + "_bias")};
  }
  /// Stacks the matrices called `names`, `outputs` columns wide, as one contraction.
  Matrix matrix(const Find& find, const std::vector<std::string>& names, std::int64_t outputs,
                const std::string& scale, const std::vector<std::string>& biases) const {
    Tensor stacked;
    if (names.size() > 1)
      for (const std::string& name : names) {
        const Tensor& t = tensor(find, name);
        stacked.data.insert(stacked.data.end(), t.data.begin(), t.data.end());
      }
    const Tensor& whole = names.size() > 1 ? stacked : tensor(find, names[0]);
    Matrix m{Vectors::columns_of(whole.data, static_cast<std::size_t>(outputs)), find(scale), {}};
    m.stacked = std::move(stacked);  // its elements stay where they are
    for (const std::string& name : biases)
      if (const Tensor* const bias = find(name)) m.biases.push_back(bias);
    return m;
  }
  LayerWeights layer_weights(const Find& find) const {
    const ModelConfig& c = config;
    LayerWeights w{.norm = norm(find, "norm"),
                   .norm2 = {},
                   .q = matrix(find, {"wq"}, c.H * c.Q, "wq_scale", {"bq"}),
                   .k = matrix(find, {"wk"}, c.K * c.Q, "wk_scale", {"bk"}),
                   .v = matrix(find, {"wv"}, c.K * c.Q, "wv_scale", {"bv"}),
                   .gate = matrix(find, {"w_gate"}, c.F, "w_gate_scale", {"b_gate"}),
                   .up = {},
                   .block_out = {},
                   .attn_out = {},
                   .ffn_out = {}};
    if (find("w_up") != nullptr) w.up = matrix(find, {"w_up"}, c.F, "w_up_scale", {"b_up"});
    if (c.block == Block::parallel) {
      w.block_out = matrix(find, {"wo", "w_out"}, c.E, "block_out_scale", {"bo", "b_out"});
    } else {
      w.norm2 = norm(find, "norm2");
      w.attn_out = matrix(find, {"wo"}, c.E, "wo_scale", {"bo"});
      w.ffn_out = matrix(find, {"w_out"}, c.E, "w_out_scale", {"b_out"});
    }
    return w;
  }
};

/// Returns the function that looks ids up in a map of weights, which must outlive it.
template <class Weights>
auto find_in(const Weights& all) {
  return [&all](const std::string& id) {
    const auto found = all.find(id);
    return found == all.end() ? nullptr : &found->second;
  };
}

}  // namespace shardproof::oracle
