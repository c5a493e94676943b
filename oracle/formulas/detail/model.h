#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  using Vectors = typename Math::Vectors;
  /// A weight, which stays in memory as long as this.
  using Shared = std::shared_ptr<const TensorOf<Math>>;
  /// Returns the weight of this id, or null.
  using Find = std::function<Shared(const std::string& id)>;

  /// A W matrix, ready for contraction: one column per output channel.
  struct Matrix {
    Vectors columns;             ///< the weights, or the int8 codes
    Shared tensor;               ///< whose columns they are
    Shared scales = nullptr;     ///< int8 only: one per column; otherwise null
    std::vector<Shared> biases;  ///< added in this order
  };
  /// The gain of a norm, and its bias if the model has one.
  struct NormWeights {
    Shared gain, bias;
  };
  /// Weights of a layer, named after the checkpoints they produce. A parallel block has block_out,
  /// a serial one norm2, attn_out and ffn_out; a plain FFN has no up.
  struct LayerWeights {
    NormWeights norm;
    std::optional<NormWeights> norm2;
    Matrix q, k, v, gate;
    std::optional<Matrix> up, block_out, attn_out, ffn_out;
  };
  /// Weights behind the layers; `unembed` has one vector of E per token, unscaled, and its bias one
  /// number per token.
  struct HeadWeights {
    NormWeights norm;
    Matrix unembed;
  };

  /// Views the weights that `find` returns; only matrices that form one contraction are copied.
  /// `on_demand`: asks for them each time that they are needed, otherwise now. Throws
  /// Error("weights_name", ...) if there is none that the model needs.
  Model(const ModelConfig& of, Find find, bool on_demand = false)
      : config(of),
        cos(find("rope_cos")),
        sin(find("rope_sin")),
        slopes(find("alibi_slopes")),
        find_(std::move(find)) {
    if (on_demand) return;
    table_ = tensor("embed");
    for (std::int64_t layer = 0; layer < of.layers; ++layer) layers_.push_back(make_layer(layer));
    head_ = make_head();
  }

  ModelConfig config;
  Shared cos, sin;  ///< position x pair; null without RoPE
  Shared slopes;    ///< ALiBi slopes, one per query head; null without

  /// Returns the table, V x E.
  Shared table() const { return table_ != nullptr ? table_ : tensor("embed"); }
  std::shared_ptr<const LayerWeights> layer(std::int64_t layer) const {
    return layers_.empty() ? make_layer(layer) : layers_[static_cast<std::size_t>(layer)];
  }
  std::shared_ptr<const HeadWeights> head() const { return head_ != nullptr ? head_ : make_head(); }

 private:
  Shared tensor(const std::string& name) const {
    if (Shared found = find_(name)) return found;
    throw Error("weights_name", fmt::format("{} has no weight {:?}", print_model(config), name));
  }
  NormWeights norm(const std::string& name) const { return {tensor(name), find_(name + "_bias")}; }
  std::shared_ptr<const HeadWeights> make_head() const {
    const Shared rows = tensor(config.tied ? "embed" : "unembed");
    const Vectors vectors = Vectors::rows_of(rows->data, static_cast<std::size_t>(config.V));
    Matrix unembed{vectors, rows, nullptr, {}};
    if (const Shared bias = find_("unembed_bias")) unembed.biases.push_back(bias);
    return std::make_shared<const HeadWeights>(HeadWeights{norm("final_norm"), std::move(unembed)});
  }
  /// Stacks the matrices of a layer called `names`, `outputs` columns wide, as one contraction.
  Matrix matrix(std::int64_t layer, const std::vector<std::string>& names, std::int64_t outputs,
                const std::string& scale, const std::vector<std::string>& biases) const {
    Shared whole;
    if (names.size() > 1) {
      auto stacked = std::make_shared<TensorOf<Math>>();
      for (const std::string& name : names) {
        const Shared t = tensor(weight_id(layer, name));
        stacked->data.insert(stacked->data.end(), t->data.begin(), t->data.end());
      }
      whole = std::move(stacked);
    } else {
      whole = tensor(weight_id(layer, names[0]));
    }
    Matrix m{Vectors::columns_of(whole->data, static_cast<std::size_t>(outputs)),
             whole,
             find_(weight_id(layer, scale)),
             {}};
    for (const std::string& name : biases)
      if (const Shared bias = find_(weight_id(layer, name))) m.biases.push_back(bias);
    return m;
  }
  std::shared_ptr<const LayerWeights> make_layer(std::int64_t layer) const {
    const ModelConfig& c = config;
    const auto of = [&](const std::vector<std::string>& names, std::int64_t outputs,
                        const std::string& scale, const std::vector<std::string>& biases) {
      return matrix(layer, names, outputs, scale, biases);
    };
    LayerWeights w{.norm = norm(weight_id(layer, "norm")),
                   .norm2 = {},
                   .q = of({"wq"}, c.H * c.Q, "wq_scale", {"bq"}),
                   .k = of({"wk"}, c.K * c.Q, "wk_scale", {"bk"}),
                   .v = of({"wv"}, c.K * c.Q, "wv_scale", {"bv"}),
                   .gate = of({"w_gate"}, c.F, "w_gate_scale", {"b_gate"}),
                   .up = {},
                   .block_out = {},
                   .attn_out = {},
                   .ffn_out = {}};
    if (find_(weight_id(layer, "w_up")) != nullptr)
      w.up = of({"w_up"}, c.F, "w_up_scale", {"b_up"});
    if (c.block == Block::parallel) {
      w.block_out = of({"wo", "w_out"}, c.E, "block_out_scale", {"bo", "b_out"});
    } else {
      w.norm2 = norm(weight_id(layer, "norm2"));
      w.attn_out = of({"wo"}, c.E, "wo_scale", {"bo"});
      w.ffn_out = of({"w_out"}, c.E, "w_out_scale", {"b_out"});
    }
    return std::make_shared<const LayerWeights>(std::move(w));
  }

  Find find_;
  // Null or empty on demand:
  Shared table_;
  std::vector<std::shared_ptr<const LayerWeights>> layers_;
  std::shared_ptr<const HeadWeights> head_;
};

/// Returns the function that looks ids up in a map of weights, which must outlive it.
template <class Map>
auto find_in(const Map& all) {
  using Tensor = typename Map::mapped_type;
  return [&all](const std::string& id) {
    const auto found = all.find(id);
    return std::shared_ptr<const Tensor>(std::shared_ptr<void>(),
                                         found == all.end() ? nullptr : &found->second);
  };
}

}  // namespace shardproof::oracle
