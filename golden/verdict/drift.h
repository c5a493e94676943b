#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "oracle/model/oracle.h"

namespace shardproof {

class ScalarModel;

/// The distance of an f32 run from the exact one: reported, never judged. Only passes with the
/// exact run's inputs count, that is, all up to the first one that samples another token.
struct Drift {
  /// By checkpoint name: max |f32 − exact| over the root mean square of the exact tensor.
  std::map<std::string, double> relative;
  std::int64_t equal_tokens = 0, tokens = 0;

  /// Returns the checkpoint with the largest drift, and that drift; "" if nothing was compared.
  std::pair<std::string, double> worst() const;
  /// Returns "drift from exact (not judged): worst attn 3.1e-06, logits 8.0e-07; 72 of 72 tokens
  /// agree".
  std::string to_string() const;
  void add(const Drift& other);
};

/// Follows a scalar model pass by pass.
class DriftMeter {
 public:
  explicit DriftMeter(const oracle::Answer& exact) : exact_(exact) {}

  /// Call after each ScalarModel::next_pass().
  void measure(const ScalarModel& model);
  const Drift& drift() const { return drift_; }

 private:
  const oracle::Answer& exact_;
  Drift drift_;
  bool apart_ = false;
};

}  // namespace shardproof
