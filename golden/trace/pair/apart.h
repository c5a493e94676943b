#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "golden/bounds/number/fit.h"
#include "golden/trace/value/same_bits.h"
#include "weights/base/number_format.h"

namespace shardproof::dump {

/// How far the numbers of a value are apart in two traces.
struct Apart {
  std::int64_t elements = 0;  ///< that both have
  std::int64_t unequal = 0;   ///< of which the bits differ
  double most = 0.0;          ///< the largest distance; infinite if one of two is not finite
  double scale = 0.0;         ///< root mean square of both
  /// The largest distance in spacings of the coarser storage format, at the larger of the two
  /// numbers and of the root mean square; 0 for whole numbers.
  double units = 0.0;
  std::int64_t place = 0;   ///< of the largest distance, in the first trace's value
  double a = 0.0, b = 0.0;  ///< the numbers there

  bool same() const { return elements > 0 && unequal == 0; }
  /// Returns the largest distance over the root mean square.
  double relative() const { return bounds::relative(most, scale); }
};

/// Returns the spacing of a format's numbers around v; 0 for whole numbers.
inline double spacing(NumberFormat format, double v) {
  const NumberFormatRow& row = row_of(format);
  if (row.unit == 0 || !std::isfinite(v)) return 0.0;
  const double normal = v == 0 ? 0.0 : std::ldexp(2 * row.unit, std::ilogb(v));
  return std::max(normal, 2 * row.least);
}

/// Measures pairs of numbers: `each` calls its argument with (place, a, b) for each pair, the same
/// ones each time.
template <class Each>
Apart apart(NumberFormat coarser, Each&& each) {
  Apart found;
  double squares = 0.0, count = 0.0;
  each([&](std::int64_t, double a, double b) {
    for (const double v : {a, b})
      if (std::isfinite(v)) squares += v * v, ++count;
  });
  found.scale = std::sqrt(squares / std::max(count, 1.0));
  bool any = false;
  each([&](std::int64_t place, double a, double b) {
    ++found.elements;
    if (same_bits(a, b)) return;
    ++found.unequal;
    double distance = std::abs(a - b);
    if (!std::isfinite(distance)) distance = HUGE_VAL;
    if (distance > found.most || !any)
      found.most = distance, found.place = place, found.a = a, found.b = b;
    any = true;
    const double step = spacing(coarser, std::max({std::abs(a), std::abs(b), found.scale}));
    if (step > 0) found.units = std::max(found.units, distance / step);
  });
  return found;
}

}  // namespace shardproof::dump
