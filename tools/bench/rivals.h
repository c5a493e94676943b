#pragma once

#include <functional>
#include <vector>

#include "tools/bench/ffn.h"

namespace shardproof::bench {

/// Unsharded FFNs with which the simulated FFN is compared, for one number of tokens: x·W1,
/// doubled, ·W2. Eigen uses the best instruction set that both this machine and our kernels
/// support.
class Rivals {
 public:
  explicit Rivals(std::int64_t tokens);

  const Ffn& ffn() const { return ffn_; }

  void eigen_f32(bool doubled = true);
  void eigen_f64();
  /// Runs the project's kernel of the f32 regime.
  void own_f32();
  /// Runs the project's f64 kernel only, h rounded to f32 in between: the cost of the exact
  /// regime's products without bounds and without the test of their rounding.
  void own_f64();

 private:
  Ffn ffn_;
  std::vector<float> h_, y_;
  std::vector<double> hd_, yd_, xd_, w1d_, w2d_;
};

}  // namespace shardproof::bench
