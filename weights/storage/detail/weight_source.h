#pragma once

#include <cstdint>
#include <string>

#include "weights/base/tensor.h"
#include "weights/text/model_text.h"

namespace shardproof {

/// The input of a weight's generator, besides the seed.
struct WeightSource {
  std::string id;  ///< in files: "layer0.wq"
  std::string letters;
  Shape shape;
  TextWeightKind kind = TextWeightKind::matrix;  ///< not by_use
  std::int64_t fan_in = 1;   ///< of a matrix: the extents that its contraction sums over
  bool either_sign = false;  ///< of a gain
  double rotated = 0;        ///< of cosines and sines: the channels that rotate
  double theta = 0;          ///< of cosines and sines
};

Tensor generate_weight(const WeightSource& source, std::uint64_t seed);

}  // namespace shardproof
