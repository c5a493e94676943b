#pragma once

#include <functional>
#include <vector>

#include "tools/bench/ffn.h"

namespace shardproof::bench {

/// Unsharded pairs of products that the simulated FFN is held against, for one number of tokens:
/// x·W1, doubled, ·W2. Eigen's are in the best instruction set that this machine has and that our
/// kernels have, too.
class Rivals {
 public:
  explicit Rivals(std::int64_t tokens);

  const Ffn& ffn() const { return ffn_; }

  void eigen_f32(bool doubled = true);
  void eigen_f64();
  /// Our kernel of the f32 regime.
  void own_f32();
  /// Our f64 kernel alone, h rounded to f32 between: what the exact regime's products cost without
  /// bounds and without the test of their rounding.
  void own_f64();

 private:
  Ffn ffn_;
  std::vector<float> h_, y_;
  std::vector<double> hd_, yd_, xd_, w1d_, w2d_;
};

}  // namespace shardproof::bench
