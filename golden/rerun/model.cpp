#include "golden/rerun/model.h"

#include <utility>

#include "weights/base/detail/index.h"
#include "weights/model/registry.h"
#include "weights/model/softmax.h"
#include "weights/text/block_terms.h"

namespace shardproof::rerun {
namespace {

template <class Real>
std::vector<Real> transposed(const std::vector<Real>& of, std::size_t rows) {
  const std::size_t columns = of.size() / rows;
  std::vector<Real> to(of.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = of[r * columns + c];
  return to;
}

template <class Real>
Part<Real> part(const Weights& weights, std::int64_t layer, const std::string& name,
                const Composite& of) {
  Part<Real> part{name, of, {}, {}, {}, 0};
  const auto numbers = [&](const std::string& weight) {
    const std::shared_ptr<const Tensor> own = weights.at(weight_id(layer, weight));
    return std::vector<Real>(own->data.begin(), own->data.end());
  };
  for (const std::string& weight : of.weights) part.weights.push_back(numbers(weight));
  for (const std::string& bias : of.biases) part.biases.push_back(numbers(bias));
  if (of.kind != CompositeKind::product) return part;
  if (weight_row(of.scale) != nullptr) part.scales = numbers(of.scale);
  for (std::size_t t = 0; t < of.weights.size(); ++t) {
    std::string kept;
    for (const char letter : weight_row(of.weights[t])->dims)
      if (of.contracted[t].find(letter) == std::string::npos) kept += letter;
    part.columns = at(element_count(shape_of(kept, weights.config())));
    if (weight_row(of.weights[t])->dims.starts_with(kept))
      part.weights[t] = transposed(part.weights[t], part.columns);
  }
  return part;
}

}  // namespace

template <class Real>
Model<Real>::Model(const Weights& weights)
    : config(weights.config()),
      layers(at(config.layers)),
      terms(at(config.layers)),
      eps(static_cast<Real>(eps_of_norms(config))),
      score_scale(
          static_cast<Real>(scale_of_scores(config.softmax, static_cast<double>(config.Q)))),
      logit_scale(static_cast<Real>(scale_of_logits(config))) {
  const NumberFormat stored = weights.stored_type();
  for (const auto& [name, of] : composites_of(config, stored)) {
    if (!value_row(name)->per_layer)
      (of.kind == CompositeKind::lookup ? embedding : head)
          .push_back(part<Real>(weights, 0, name, of));
    else
      for (std::size_t layer = 0; layer < layers.size(); ++layer)
        layers[layer].push_back(part<Real>(weights, static_cast<std::int64_t>(layer), name, of));
  }
  for (const auto& [name, of] : block_terms_of(config, stored))
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      terms[layer].push_back(part<Real>(weights, static_cast<std::int64_t>(layer), name, of));
}

template struct Model<float>;
template struct Model<double>;

}  // namespace shardproof::rerun
