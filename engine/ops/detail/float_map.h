#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/ops/map.h"
#include "weights/base/error.h"
#include "weights/text/ops.h"

namespace shardproof {

/// Numbers of a map in the exact and the f32 regime: f64, from operands of f32 or int32.
class FloatMap {
 public:
  using Number = double;
  using Result = float;
  static constexpr bool kFormal = false;

  explicit FloatMap(const MapExpression& map) : map_(map) {}

  static const float* shard(const Sharded& value, std::int64_t chip) {
    return value.f32()[static_cast<std::size_t>(chip)].data();
  }
  static double operand(float v) { return static_cast<double>(v); }
  static double integer(std::int64_t v) { return static_cast<double>(v); }
  double word(std::string_view word) const { return map_.names.number(word).value(); }
  static double pair(ModelOp op, double a, double b);
  /// Returns the function of an op of one number, or of one with two parameters.
  std::function<double(double)> function(const Expression& e) const;
  static float result(double v) { return static_cast<float>(v); }

 private:
  const MapExpression& map_;
};

}  // namespace shardproof
