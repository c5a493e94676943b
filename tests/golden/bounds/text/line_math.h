#pragma once

#include <cmath>
#include <random>
#include <utility>

#include "golden/bounds/text/interval_math.h"

namespace shardproof::bounds {

inline const TextSizes kNoSizes;

/// Operations of a line as a text is replayed with.
inline IntervalMath math_of(const LineArithmetic& line) {
  IntervalMath math(kNoSizes, [=](const TextLine&, std::int64_t, bool) { return line; });
  math.begin({}, 0, false);
  return math;
}
inline LineArithmetic f32() { return {}; }
inline LineArithmetic bf16_line() {
  LineArithmetic line;
  line.declared.values = NumberFormat::bf16;
  line.may_round = true;
  return line;
}

using Random = std::mt19937_64;
inline double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
/// A number known to within a radius, and one inside.
inline std::pair<Estimate, float> operand(Random& random, double low, double high, double radius) {
  const auto center = static_cast<double>(static_cast<float>(uniform(random, low, high)));
  const double r = radius * std::abs(center);
  const auto inside = static_cast<float>(center + 0.9 * r * (random() % 2 == 0 ? 1 : -1));
  return {{{center, r, r}}, r == 0 ? static_cast<float>(center) : inside};
}

}  // namespace shardproof::bounds
