#pragma once

#include <array>
#include <cstddef>

#include "golden/bounds/number/number.h"

namespace shardproof::bounds {

inline constexpr std::size_t kLanes = 8;

/// Numbers of several elements, which are computed side by side in vector registers: each operation
/// here gives in every lane what that of Number gives of it alone.
struct Lanes {
  std::array<double, kLanes> center{}, worst{}, likely{};

  Number number(std::size_t lane) const { return {center[lane], worst[lane], likely[lane]}; }
  void set(std::size_t lane, const Number& v) {
    center[lane] = v.center, worst[lane] = v.worst, likely[lane] = v.likely;
  }
  bool operator==(const Lanes&) const = default;
};

/// Returns a + b, each sum with a rounding as of Operations::plus.
Lanes plus(const Operations& by, const Lanes& a, const Lanes& b);

/// Returns each number as stored(number, format).
Lanes stored(const Lanes& of, NumberFormat format);

/// The smallest numbers whose intervals contain those of all numbers that it includes, as hull().
class LaneHull {
 public:
  void include(const Lanes& of);
  /// Includes also what the numbers included so far may round to.
  void include_stored(NumberFormat format);
  /// Returns the hull; of nothing, nothing is known.
  Lanes lanes() const;

 private:
  using Row = std::array<double, kLanes>;
  static constexpr Row all(double end) {
    Row ends;
    ends.fill(end);
    return ends;
  }
  Row low_ = all(kInfinity), high_ = all(-kInfinity);
  Row likely_low_ = all(kInfinity), likely_high_ = all(-kInfinity);
};

}  // namespace shardproof::bounds
