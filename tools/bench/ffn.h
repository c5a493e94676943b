#pragma once

#include <map>
#include <string>

#include "engine/program/execute.h"
#include "weights/base/tensor.h"

namespace shardproof::bench {

/// The FFN of the comparisons: x [T,1,E] -> x·W1, doubled in place of an activation, ·W2. Factors
/// are normally distributed, so that sums are as inexact as a model's.
class Ffn {
 public:
  static constexpr std::int64_t E = 512;
  static constexpr std::int64_t F = 2048;

  explicit Ffn(std::int64_t tokens);

  std::int64_t tokens() const { return tokens_; }
  const Tensor& x() const { return x_; }
  const Tensor& w1() const { return w1_; }
  const Tensor& w2() const { return w2_; }

 private:
  std::int64_t tokens_;
  Tensor x_, w1_, w2_;
};

/// Runs an Ffn 2D weight-stationary (paper §3.2.2) on simulated chips, through the executor without
/// hazards or observer. Weights are placed beforehand; a run takes x in its resident layout
/// (BLE_xzy), gathers, multiplies, scatters, doubles, gathers, multiplies, scatters, and frees all
/// it allocated.
class SimulatedFfn {
 public:
  SimulatedFfn(const Ffn& ffn, const Torus& torus, Regime regime, bool activation,
               Threads& threads);

  /// Runs the FFN; returns y in its resident layout.
  SharedValue run() const;

  /// Peak bytes of live shards in the engine's representation, inputs included, computed from the
  /// program's liveness and the size of each value.
  std::int64_t peak_bytes() const;

 private:
  ModelConfig config_;
  Regime regime_;
  Threads& threads_;
  Program program_;
  std::map<std::string, Type> types_;
  std::map<std::string, SharedValue> inputs_;
};

/// Returns the torus of a comparison: x is chosen to make both products' shards about square.
Torus torus_of(int chips);

}  // namespace shardproof::bench
