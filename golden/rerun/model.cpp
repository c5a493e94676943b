#include "golden/rerun/model.h"

#include <string>

#include "weights/model/registry.h"
#include "weights/model/softmax.h"

namespace shardproof::rerun {
namespace {

template <class Real>
using Vector = std::vector<Real>;

template <class Real>
Vector<Real> numbers(const Weights& weights, const std::string& name) {
  const auto found = weights.all().find(name);
  if (found == weights.all().end()) return {};
  return {found->second.data.begin(), found->second.data.end()};
}

template <class Real>
Vector<Real> transposed(const Vector<Real>& of, std::size_t rows) {
  const std::size_t columns = of.size() / rows;
  Vector<Real> to(of.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = of[r * columns + c];
  return to;
}

template <class Real>
auto layer_of(const Weights& weights, std::int64_t layer) {
  const ModelConfig& config = weights.config();
  const auto of = [&](std::string_view name) {
    return numbers<Real>(weights, weight_id(layer, name));
  };
  const auto matrix = [&](std::string_view name, std::string_view bias, std::int64_t columns) {
    const WeightRow* const scale = scale_of(config, name);
    return
        typename Model<Real>::Matrix{of(name), scale == nullptr ? Vector<Real>() : of(scale->name),
                                     of(bias), static_cast<std::size_t>(columns)};
  };
  const std::int64_t HQ = config.H * config.Q, KQ = config.K * config.Q;
  return typename Model<Real>::Layer{{of("norm"), of("norm_bias")},
                                     {of("norm2"), of("norm2_bias")},
                                     matrix("wq", "bq", HQ),
                                     matrix("wk", "bk", KQ),
                                     matrix("wv", "bv", KQ),
                                     matrix("w_gate", "b_gate", config.F),
                                     matrix("w_up", "b_up", config.F),
                                     matrix("wo", "bo", config.E),
                                     matrix("w_out", "b_out", config.E)};
}

}  // namespace

template <class Real>
Model<Real>::Model(const Weights& weights)
    : config(weights.config()),
      final_norm{numbers<Real>(weights, "final_norm"), numbers<Real>(weights, "final_norm_bias")},
      table(numbers<Real>(weights, "embed")),
      cosines(numbers<Real>(weights, "rope_cos")),
      sines(numbers<Real>(weights, "rope_sin")),
      slopes(numbers<Real>(weights, "alibi_slopes")),
      eps(static_cast<Real>(eps_of_norms(config))),
      score_scale(
          static_cast<Real>(scale_of_scores(config.softmax, static_cast<double>(config.Q)))),
      logit_scale(static_cast<Real>(scale_of_logits(config))) {
  const auto V = static_cast<std::size_t>(config.V);
  unembed = {transposed(config.tied ? table : numbers<Real>(weights, "unembed"), V),
             {},
             numbers<Real>(weights, "unembed_bias"),
             V};
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    layers.push_back(layer_of<Real>(weights, layer));
}

template struct Model<float>;
template struct Model<double>;

}  // namespace shardproof::rerun
