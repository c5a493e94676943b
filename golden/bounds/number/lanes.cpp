#include "golden/bounds/number/lanes.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "golden/bounds/number/detail/short_format.h"

namespace shardproof::bounds {
namespace {

/// Numbers in one register, and their bits.
using Vector = double __attribute__((vector_size(4 * sizeof(double))));
using BitVector = std::uint64_t __attribute__((vector_size(4 * sizeof(double))));

}  // namespace

template <>
struct BitsOf<Vector> {
  using type = BitVector;
};

namespace {

constexpr std::size_t kVector = sizeof(Vector) / sizeof(double);
static_assert(kLanes % kVector == 0);

constexpr double kLargest = std::numeric_limits<double>::max();

using Row = std::array<double, kLanes>;
Vector load(const Row& from, std::size_t i) {
  Vector v;
  std::memcpy(&v, from.data() + i, sizeof v);
  return v;
}
void store(Row& to, std::size_t i, const Vector& v) { std::memcpy(to.data() + i, &v, sizeof v); }

/// The ends of around(center, radius), of numbers or vectors.
template <class T>
struct Ends {
  T low, high;
};
template <class T>
Ends<T> ends_of(const T& center, const T& radius) {
  const T largest = all_of<T>(kLargest), infinite = all_of<T>(kInfinity), none = T{};
  const T size = size_of(center);
  T half = radius + all_of<T>(0x1p-51) * (size + radius);
  half = size <= largest ? half : infinite;
  half = radius <= largest ? half : infinite;  // of NaN too
  half = radius == none ? (size <= infinite ? none : infinite) : half;
  const T low = center - half, high = center + half;
  return {half == infinite ? -infinite : low, half == infinite ? infinite : high};
}

/// Returns the radius around a finite center that covers the ends.
template <class T>
T radius_of(const T& center, const T& low, const T& high) {
  const T up = high - center, down = center - low, none = T{};
  const T radius = up > down ? up : down, least = radius > none ? radius : none;
  return radius <= all_of<T>(kLargest) ? least : all_of<T>(kInfinity);
}

}  // namespace

Lanes plus(const Operations& by, const Lanes& a, const Lanes& b) {
  Lanes y;
  const auto unit = all_of<Vector>(by.unit()), least = all_of<Vector>(by.least());
  const auto largest = all_of<Vector>(kLargest), infinite = all_of<Vector>(kInfinity);
  for (std::size_t i = 0; i < kLanes; i += kVector) {
    const Vector center = load(a.center, i) + load(b.center, i), size = size_of(center);
    const Vector worst = load(a.worst, i) + load(b.worst, i);
    const Vector likely = load(a.likely, i) + load(b.likely, i);
    const Vector of_worst = worst + unit * (size + worst) + least;
    const Vector of_likely = likely + unit * (size + likely) + least;
    const auto overflows = (size == infinite) & (worst <= largest);
    store(y.center, i, center);
    store(y.worst, i, overflows ? Vector{} : of_worst);
    store(y.likely, i, overflows ? Vector{} : of_likely);
  }
  return y;
}

Lanes stored(const Lanes& of, NumberFormat format) {
  Lanes y;
  const ShortFormat* const by = short_format(format);
  bool simple = by != nullptr;
  for (std::size_t i = 0; simple && i < kLanes; i += kVector) {
    const Vector x = load(of.center, i), center = to_short(x, *by);
    const auto radius = [&](const Row& radii) {
      const Ends<Vector> ends = ends_of(x, load(radii, i));
      return radius_of(center, low_of_short(ends.low, *by), high_of_short(ends.high, *by));
    };
    store(y.center, i, center);
    store(y.worst, i, radius(of.worst));
    store(y.likely, i, radius(of.likely));
  }
  for (std::size_t i = 0; i < kLanes; ++i)
    simple = simple && of.worst[i] <= kLargest && std::abs(y.center[i]) <= kLargest;
  if (simple) return y;
  // What is infinite or unknown, before or after, goes one by one.
  for (std::size_t i = 0; i < kLanes; ++i) y.set(i, stored(of.number(i), format));
  return y;
}

void LaneHull::include(const Lanes& of) {
  const auto include = [&](const Row& radii, Row& low, Row& high) {
    for (std::size_t i = 0; i < kLanes; i += kVector) {
      const Ends<Vector> ends = ends_of(load(of.center, i), load(radii, i));
      const Vector least = load(low, i), most = load(high, i);
      store(low, i, ends.low < least ? ends.low : least);
      store(high, i, ends.high > most ? ends.high : most);
    }
  };
  include(of.worst, low_, high_);
  include(of.likely, likely_low_, likely_high_);
}

void LaneHull::include_stored(NumberFormat format) {
  const ShortFormat* const by = short_format(format);
  if (by == nullptr) return;
  const auto include = [&](Row& low, Row& high) {
    for (std::size_t i = 0; i < kLanes; i += kVector) {
      const Vector least = load(low, i), most = load(high, i);
      const Vector rounded_low = low_of_short(least, *by), rounded_high = high_of_short(most, *by);
      store(low, i, rounded_low < least ? rounded_low : least);
      store(high, i, rounded_high > most ? rounded_high : most);
    }
  };
  include(low_, high_);
  include(likely_low_, likely_high_);
}

Lanes LaneHull::lanes() const {
  Lanes y;
  for (std::size_t i = 0; i < kLanes; ++i) {
    if (low_[i] == high_[i]) {  // one number, which may be infinite
      y.set(i, {low_[i], 0.0, 0.0});
      continue;
    }
    const double center = 0.5 * (low_[i] + high_[i]);
    if (!(std::abs(center) <= kLargest)) {
      y.set(i, {0.0, kInfinity, kInfinity});
      continue;
    }
    y.set(i, {center, radius_of(center, low_[i], high_[i]),
              radius_of(center, likely_low_[i], likely_high_[i])});
  }
  return y;
}

}  // namespace shardproof::bounds
