#include "golden/bounds/number/carried.h"

#include <cmath>
#include <utility>

namespace shardproof::bounds {

double Declared::growth(std::int64_t n) const {
  const double logarithm = static_cast<double>(n) * std::log1p(unit_of(sums)) +
                           folded * std::log1p(unit_of_folded()) +
                           wire_roundings * std::log1p(unit_of(wire));
  return std::expm1(logarithm) * (1 + 0x1p-20);
}

Carried::Carried(Shape of) : shape(std::move(of)) {
  center.assign(static_cast<std::size_t>(element_count(shape)), 0.0);
  radius = likely = center;
}

Carried::Carried(const Tensor& exact) : Carried(exact.shape) {
  for (std::size_t i = 0; i < center.size(); ++i) center[i] = static_cast<double>(exact.data[i]);
}

Carried::Carried(Array<double> exact)
    : shape(std::move(exact.shape)), center(std::move(exact.data)) {
  radius.assign(center.size(), 0.0);
  likely = radius;
}

Carried Carried::rounded(Format format) const {
  Carried r = *this;
  for (std::size_t i = 0; i < r.size(); ++i) r.set(i, stored(number(i), format));
  return r;
}

Carried Carried::with_likely_radius() const {
  Carried r = *this;
  r.radius = r.likely;
  return r;
}

Carried hull(const Carried& a, const Carried& b) {
  Carried all = a;
  for (std::size_t i = 0; i < all.size(); ++i) all.set(i, hull(a.number(i), b.number(i)));
  return all;
}

Sum CarriedSum::sum() const {
  return {count_, high_ + low_, size_, most_ - least_, worst_, likely_};
}

Number CarriedSum::value(const Declared& declared, const Depth& depth) const {
  return bound(sum(), declared, depth);
}

}  // namespace shardproof::bounds
