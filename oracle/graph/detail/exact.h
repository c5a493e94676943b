#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "oracle/numeric/detail/functions.h"
#include "oracle/numeric/wide_sum.h"
#include "weights/base/error.h"
#include "weights/model/numerics.h"
#include "weights/text/ops.h"
#include "weights/text/sizes.h"

namespace shardproof::oracle::graph {

/// Numbers of the exact regime: values are f32, what is nested in a line is f64, sums are rounded
/// once (docs/spec-model-text.md, "Numbers").
class Exact {
 public:
  using Scalar = double;
  using Sum = WideSum;

  Exact(ActType act, const TextSizes& sizes) : act_(act), sizes_(sizes) {}

  static Sum sum() { return {}; }
  static double number(double v) { return v; }
  double word(const std::string& word) const { return sizes_.number(word); }
  /// Returns the element of a named value.
  static double named(double v) { return static_cast<double>(static_cast<float>(v)); }
  double stored(double v) const {
    const auto rounded = static_cast<float>(v);
    return static_cast<double>(act_ == ActType::bf16 ? bf16(rounded) : rounded);
  }

  static double pair(ModelOp op, double a, double b);
  /// A function of one number; store is stored().
  double function(ModelOp op, double x) const;
  static double ranged(ModelOp op, double x, double low, double high);
  static double index(double v) { return v; }
  static double negative(double x) { return -x; }
  static bool less(double a, double b) { return a < b; }
  static bool is_zero(double x) { return x == 0; }
  static double divided(double x, std::int64_t by) { return x / static_cast<double>(by); }

 private:
  ActType act_;
  const TextSizes& sizes_;
};

}  // namespace shardproof::oracle::graph
