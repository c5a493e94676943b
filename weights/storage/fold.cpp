#include "weights/storage/fold.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof {
namespace {

/// Name of a weight's row, and the factor that is folded into the weight.
struct Factor {
  std::string_view name;
  double factor;
};

std::vector<Factor> factors_of(const ModelConfig& config) {
  const double of_queries = kLog2E / std::sqrt(static_cast<double>(config.Q));
  const auto c = static_cast<double>(folded_scale(config));
  std::vector<Factor> all{{"wq", of_queries},
                          {"bq", of_queries},
                          {"alibi_slopes", kLog2E},
                          {"unembed_bias", kLog2E}};  // added after the logits are scaled
  if (config.ffn == Ffn::swiglu)
    for (const char* name : {"w_gate", "b_gate"}) all.push_back({name, 0.5});
  // A tied table scales the residual stream, and so must everything added to it; the norms, whose
  // eps is scaled accordingly, remove the factor.
  if (config.tied)
    for (const char* name : {"embed", "wo", "w_out", "bo", "b_out"}) all.push_back({name, c});
  else
    all.push_back({"unembed", c});
  return all;
}

void multiply(Tensor& tensor, double factor) {
  for (float& v : tensor.data) v = static_cast<float>(static_cast<double>(v) * factor);
}

}  // namespace

Weights fold(const Weights& weights) {
  ModelConfig config = weights.config();
  if (config.softmax == Softmax::base2)
    throw Error("weights_fold",
                fmt::format("{}: its constants are in the weights already; legal: weights of a "
                            "model without softmax=base2",
                            print_model(config)));
  const bool int8 = weights.stored_type() == NumberFormat::int8;
  config.softmax = Softmax::base2;
  validate(config);
  std::map<std::string, double> factors;  // by the id of the weight
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const Factor& one : factors_of(config)) {
      const WeightRow* row = weight_row(one.name);
      if (!row->in_model(config) || (!row->per_layer && layer > 0)) continue;
      // Two matrices of one contraction share a scale, which is folded once.
      if (const WeightRow* const scale = int8 ? scale_of(config, one.name) : nullptr) row = scale;
      factors.emplace(weight_id(layer, row->name), one.factor);
    }
  Weights folded = weights.changed(
      config, [factors = std::move(factors)](const std::string& name, Tensor& tensor) {
        if (const auto at = factors.find(name); at != factors.end()) multiply(tensor, at->second);
      });
  validate(folded);
  return folded;
}

}  // namespace shardproof
