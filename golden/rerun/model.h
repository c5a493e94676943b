#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weights/storage/weights.h"
#include "weights/text/composites.h"

namespace shardproof::rerun {

/// A named value of the model, with its weights in the arithmetic of the runs.
template <class Real>
struct Part {
  using Vector = std::vector<Real>;
  std::string name;
  Composite of;
  std::vector<Vector> weights;  ///< of a product row-major [inputs, columns]
  std::vector<Vector> biases;
  Vector scales;            ///< of a product's columns; empty if it has none
  std::size_t columns = 0;  ///< of a product
};

/// The model's values in order of computation. Real is float or double.
template <class Real>
struct Model {
  using Parts = std::vector<Part<Real>>;

  /// `weights` as stored for the run; for int8 the codes and scales.
  explicit Model(const Weights& weights);

  ModelConfig config;
  Parts embedding, head;
  std::vector<Parts> layers;
  std::vector<Parts> terms;  ///< of each layer: the terms of a parallel block's sum
  Real eps, score_scale, logit_scale;
};

}  // namespace shardproof::rerun
