#pragma once

#include <string_view>
#include <vector>

#include "weights/storage/weights.h"

namespace shardproof::rerun {

/// The model's weights in the arithmetic of the runs. Real is float or double.
template <class Real>
struct Model {
  using Vector = std::vector<Real>;
  /// A W matrix, row-major [inputs, columns], and the scales and bias applied to its sum; empty if
  /// there are none.
  struct Matrix {
    Vector numbers, scales, bias;
    std::size_t columns = 0;
    std::size_t inputs() const { return columns == 0 ? 0 : numbers.size() / columns; }
  };
  struct Norm {
    Vector gain, bias;
  };
  struct Layer {
    Norm norm, norm2;
    Matrix q, k, v, gate, up, attn_out, ffn_out;
  };

  /// `weights` as stored for the run; for int8 the codes and scales.
  explicit Model(const Weights& weights);

  ModelConfig config;
  std::vector<Layer> layers;
  Norm final_norm;
  Vector table;                   ///< [VE]
  Matrix unembed;                 ///< [EV]
  Vector cosines, sines, slopes;  ///< empty if the model has none
  Real eps, score_scale, logit_scale;
};

}  // namespace shardproof::rerun
